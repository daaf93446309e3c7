-- The texts that a batch's guidelines have had since the batch was drawn: `old` and `new` are hashes of texts in `prompts`.
-- The task of the batch keeps its text, because runs of judges have shown it. Rows are only added.
CREATE TABLE guideline_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT NOT NULL REFERENCES batches(batch),
    old TEXT NOT NULL REFERENCES prompts(sha256),
    new TEXT NOT NULL REFERENCES prompts(sha256),
    why TEXT NOT NULL,
    at TEXT NOT NULL
)

CREATE UNIQUE INDEX idx_guideline_changes ON guideline_changes(batch, new, at)

CREATE TRIGGER guideline_changes_keep BEFORE UPDATE ON guideline_changes
    BEGIN SELECT RAISE(ABORT, 'changes of guidelines are append-only'); END

CREATE TRIGGER guideline_changes_stay BEFORE DELETE ON guideline_changes
    BEGIN SELECT RAISE(ABORT, 'changes of guidelines are append-only'); END

-- The hash of the guidelines that a session showed. NULL: not recorded, as in a session that writes what was labelled elsewhere.
ALTER TABLE sessions ADD COLUMN guidelines TEXT

-- A unit whose text was corrected is labelled again. Its earlier labels stay in the log, and in `label_sources`.
CREATE TRIGGER reopen_corrected AFTER INSERT ON corrected_units
    BEGIN
        UPDATE assignments SET status = 'open', answers = '{}', revised = '{}', spans = '[]', layers = '{}', locked = 0
        WHERE batch IN (SELECT batch FROM batches) AND unit_id = NEW.unit_id;
    END
