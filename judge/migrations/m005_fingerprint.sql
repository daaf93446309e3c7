-- What a server says of its configuration with each reply (OpenAI's `system_fingerprint`): a model can change behind its name.
ALTER TABLE judgements ADD COLUMN system_fingerprint TEXT
