-- What changes the meaning of an answer makes a run; where it was asked and how far are facts of each attempt.
-- The runs and the requests of before (version 1) had both in one; `request_version` says how theirs were hashed.
ALTER TABLE runs ADD COLUMN identity TEXT CHECK (identity IS NULL OR json_valid(identity));

ALTER TABLE runs ADD COLUMN request_version INTEGER NOT NULL DEFAULT 1;

UPDATE runs SET identity = json_remove(options, '$.answers', '$.base_url', '$.max_output_tokens');

ALTER TABLE judgements ADD COLUMN base_url TEXT;

ALTER TABLE judgements ADD COLUMN max_output_tokens INTEGER;

ALTER TABLE judgements ADD COLUMN timeout REAL;

ALTER TABLE judgements ADD COLUMN cost REAL;

UPDATE judgements SET (base_url, max_output_tokens) = (
    SELECT json_extract(r.options, '$.base_url'), json_extract(r.options, '$.max_output_tokens')
    FROM runs AS r WHERE r.run_id = judgements.run_id) WHERE reused = 0;
