-- Runs made from runs without a call, and the questions whose labels they were fitted on; `fold` is NULL where what
-- labels a question was fitted on it.
ALTER TABLE runs ADD COLUMN derived_from TEXT CHECK (derived_from IS NULL OR json_valid(derived_from));

CREATE TABLE fitted_on (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    question_id TEXT NOT NULL,
    fold INTEGER,
    PRIMARY KEY (run_id, question_id)
) WITHOUT ROWID
;
