-- What the server itself says that a call cost, in US dollars (OpenRouter, xAI); `cost` is the larger of it and ours.
ALTER TABLE judgements ADD COLUMN reported_cost REAL
