CREATE TABLE batches (
    batch TEXT PRIMARY KEY,
    task TEXT NOT NULL REFERENCES tasks(task),
    purpose TEXT NOT NULL CHECK (purpose IN ('validation', 'queue')),
    seed INTEGER NOT NULL,
    options TEXT NOT NULL CHECK (json_valid(options)),
    reveal_run TEXT REFERENCES runs(run_id),
    packed_for TEXT,
    created TEXT NOT NULL,
    closed TEXT
);

CREATE TABLE batch_units (
    batch TEXT NOT NULL REFERENCES batches(batch),
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    role TEXT NOT NULL CHECK (role IN ('sample', 'training', 'attention')),
    stratum TEXT,
    probability REAL,
    weight REAL,
    PRIMARY KEY (batch, unit_id)
) WITHOUT ROWID;

CREATE TABLE assignments (
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    position INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    role TEXT NOT NULL CHECK (role IN ('sample', 'repeat', 'training', 'attention', 'adjudication')),
    repeat INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'skipped')),
    answers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(answers)),
    revised TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(revised)),
    spans TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(spans)),
    flag TEXT,
    note TEXT,
    locked INTEGER NOT NULL DEFAULT 0,
    active_ms INTEGER NOT NULL DEFAULT 0,
    idle_ms INTEGER NOT NULL DEFAULT 0,
    updated TEXT,
    PRIMARY KEY (batch, annotator_id, position)
) WITHOUT ROWID;

CREATE INDEX idx_assignments_status ON assignments(batch, annotator_id, status, position);

CREATE INDEX idx_assignments_unit ON assignments(batch, unit_id);

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    person TEXT NOT NULL,
    version TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT
);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL UNIQUE,
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    position INTEGER NOT NULL,
    kind TEXT NOT NULL
        CHECK (kind IN ('label', 'skip', 'flag', 'note', 'span', 'shown', 'keep', 'revise', 'undo')),
    field TEXT,
    value TEXT,
    reason TEXT,
    undoes TEXT REFERENCES events(event_id),
    active_ms INTEGER NOT NULL DEFAULT 0,
    idle_ms INTEGER NOT NULL DEFAULT 0,
    session_id TEXT NOT NULL REFERENCES sessions(session_id),
    at TEXT NOT NULL
);

CREATE INDEX idx_events_unit ON events(batch, annotator_id, position, seq);

CREATE INDEX idx_events_order ON events(batch, annotator_id, seq);

CREATE UNIQUE INDEX idx_events_undone ON events(undoes) WHERE undoes IS NOT NULL;

CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_closed BEFORE INSERT ON events
    WHEN (SELECT closed FROM batches WHERE batch = NEW.batch) IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'the batch is closed'); END;

CREATE VIEW batch_labels AS
    SELECT a.batch, a.annotator_id AS annotator, a.position, a.unit_id AS unit, u.question_id AS question,
           a.role, a.repeat, j.key AS field, j.value AS label, 'first' AS layer,
           a.active_ms / 1000.0 AS seconds, a.flag, a.note
    FROM assignments AS a JOIN units AS u USING (unit_id), json_each(a.answers) AS j
    WHERE a.status <> 'skipped'
    UNION ALL
    SELECT a.batch, a.annotator_id, a.position, a.unit_id, u.question_id,
           a.role, a.repeat, j.key, json_extract(j.value, '$.value'), 'revised',
           a.active_ms / 1000.0, a.flag, a.note
    FROM assignments AS a JOIN units AS u USING (unit_id), json_each(a.revised) AS j
    WHERE a.status <> 'skipped'
