CREATE TABLE batch_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT NOT NULL REFERENCES batches(batch),
    what TEXT NOT NULL CHECK (what IN ('add', 'hand over', 'extend', 'close', 'reopen', 'stop', 'resume', 'policy')),
    annotator_id TEXT,
    detail TEXT NOT NULL CHECK (json_valid(detail)),
    note TEXT,
    at TEXT NOT NULL
)

CREATE TRIGGER batch_changes_keep BEFORE UPDATE ON batch_changes
    BEGIN SELECT RAISE(ABORT, 'changes of batches are append-only'); END

CREATE TRIGGER batch_changes_stay BEFORE DELETE ON batch_changes
    BEGIN SELECT RAISE(ABORT, 'changes of batches are append-only'); END

CREATE TABLE handed_over (
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    position INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    role TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    taken_by TEXT,
    at TEXT NOT NULL,
    PRIMARY KEY (batch, annotator_id, position)
) WITHOUT ROWID

CREATE TABLE stopped (
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    why TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (batch, annotator_id)
) WITHOUT ROWID

CREATE TRIGGER events_stopped BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM stopped WHERE batch = NEW.batch AND annotator_id = NEW.annotator_id)
    BEGIN SELECT RAISE(ABORT, 'the lead has stopped your work in this batch: what you did before is kept'); END
