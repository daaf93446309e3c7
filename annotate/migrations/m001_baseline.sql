-- Batches: samples and queues of units for people.
CREATE TABLE batches (
    batch TEXT PRIMARY KEY,
    task TEXT NOT NULL REFERENCES tasks(task),
    purpose TEXT NOT NULL CHECK (purpose IN ('validation', 'queue')),
    seed INTEGER NOT NULL,
    options TEXT NOT NULL CHECK (json_valid(options)),
    reveal_run TEXT REFERENCES runs(run_id),
    packed_for TEXT,
    created TEXT NOT NULL,
    closed TEXT,
    exposure TEXT NOT NULL DEFAULT 'unknown' CHECK (exposure IN ('unknown', 'kept'))
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

-- Who labels what, in which order, and the state of it, which is computed from that unit's events.
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
    layers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(layers)),
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

-- The log of what people did. Triggers refuse changes, and rows for a closed batch or a stopped person.
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
    at TEXT NOT NULL,
    shown_ms INTEGER
);

CREATE INDEX idx_events_unit ON events(batch, annotator_id, position, seq);

CREATE INDEX idx_events_order ON events(batch, annotator_id, seq);

CREATE UNIQUE INDEX idx_events_undone ON events(undoes) WHERE undoes IS NOT NULL;

CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_closed BEFORE INSERT ON events
    WHEN (SELECT closed FROM batches WHERE batch = NEW.batch) IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'the batch is closed'); END;

CREATE TABLE stopped (
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    why TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (batch, annotator_id)
) WITHOUT ROWID;

CREATE TRIGGER events_stopped BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM stopped WHERE batch = NEW.batch AND annotator_id = NEW.annotator_id)
    BEGIN SELECT RAISE(ABORT, 'the lead has stopped your work in this batch: what you did before is kept'); END;

-- What the lead did to a batch after it was drawn.
CREATE TABLE batch_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    batch TEXT NOT NULL REFERENCES batches(batch),
    what TEXT NOT NULL CHECK (what IN ('add', 'hand over', 'extend', 'close', 'reopen', 'stop', 'resume', 'policy')),
    annotator_id TEXT,
    detail TEXT NOT NULL CHECK (json_valid(detail)),
    note TEXT,
    at TEXT NOT NULL
);

CREATE TRIGGER batch_changes_keep BEFORE UPDATE ON batch_changes
    BEGIN SELECT RAISE(ABORT, 'changes of batches are append-only'); END;

CREATE TRIGGER batch_changes_stay BEFORE DELETE ON batch_changes
    BEGIN SELECT RAISE(ABORT, 'changes of batches are append-only'); END;

-- Units that were taken from somebody's queue, so that a pack made before can still be merged.
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
) WITHOUT ROWID;

-- What each person was shown of a unit, over all batches, packs, pushes and imports.
CREATE TABLE exposures (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    person TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    what TEXT NOT NULL CHECK (what IN ('text', 'gold', 'judge', 'labels')),
    field TEXT NOT NULL DEFAULT '',
    batch TEXT NOT NULL DEFAULT '',
    how TEXT NOT NULL CHECK (how IN ('sitting', 'pack', 'push', 'pull', 'import')),
    at TEXT NOT NULL
);

CREATE UNIQUE INDEX idx_exposures ON exposures(person, unit_id, what, field, batch, how);

CREATE TRIGGER exposures_keep BEFORE UPDATE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END;

CREATE TRIGGER exposures_stay BEFORE DELETE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END;

-- Labels made elsewhere: one row for each import that brought something new.
CREATE TABLE label_imports (
    import_id TEXT PRIMARY KEY,
    format TEXT NOT NULL,
    batch TEXT REFERENCES batches(batch),
    blind TEXT NOT NULL CHECK (blind IN ('blind', 'assisted', 'undeclared', 'mixed')),
    files TEXT NOT NULL CHECK (json_valid(files)),
    sessions TEXT NOT NULL CHECK (json_valid(sessions)),
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    imported_at TEXT NOT NULL
);

-- The record of another program that an event came from: when the record is deleted there, the event is undone here.
CREATE TABLE event_sources (
    event_id TEXT PRIMARY KEY REFERENCES events(event_id),
    source TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_event_sources ON event_sources(source);

-- Incoming labels that could not be verified, with the reason; no number is computed from them.
CREATE TABLE quarantine (
    quarantine_id INTEGER PRIMARY KEY,
    record TEXT NOT NULL UNIQUE,
    batch TEXT REFERENCES batches(batch),
    format TEXT NOT NULL,
    place TEXT NOT NULL,
    annotator TEXT NOT NULL,
    unit TEXT NOT NULL,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    response TEXT CHECK (response IS NULL OR json_valid(response)),
    found_at TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'accepted', 'dropped', 'settled')),
    decided_at TEXT,
    note TEXT
);

-- Where a batch was pushed, and what came from there; `person` is empty where one project serves everybody.
CREATE TABLE label_studio_projects (
    batch TEXT NOT NULL REFERENCES batches(batch),
    url TEXT NOT NULL,
    person TEXT NOT NULL DEFAULT '',
    project INTEGER NOT NULL,
    assisted INTEGER NOT NULL CHECK (assisted IN (0, 1)),
    run TEXT REFERENCES runs(run_id),
    created TEXT NOT NULL,
    PRIMARY KEY (batch, url, person)
) WITHOUT ROWID;

CREATE TABLE label_studio_tasks (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    person TEXT NOT NULL DEFAULT '',
    task INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL DEFAULT 0,
    pulled TEXT,
    created TEXT,
    PRIMARY KEY (batch, url, person, task),
    FOREIGN KEY (batch, url, person) REFERENCES label_studio_projects(batch, url, person) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE label_studio_annotations (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    person TEXT NOT NULL DEFAULT '',
    annotation INTEGER NOT NULL,
    task INTEGER NOT NULL,
    unit_id TEXT,
    repeat INTEGER NOT NULL DEFAULT 0,
    annotator_id TEXT,
    PRIMARY KEY (batch, url, person, annotation),
    FOREIGN KEY (batch, url, person) REFERENCES label_studio_projects(batch, url, person) ON DELETE CASCADE
) WITHOUT ROWID;

-- One row for each batch, annotator, unit and field, with layer, value and seconds.
CREATE VIEW batch_labels AS
    SELECT a.batch, a.annotator_id AS annotator, a.position, a.unit_id AS unit, u.question_id AS question,
           a.role, a.repeat, j.key AS field, j.value AS label,
           coalesce((SELECT s.value FROM json_each(a.layers) AS s WHERE s.key = j.key), 'first') AS layer,
           a.active_ms / 1000.0 AS seconds, a.flag, a.note
    FROM assignments AS a JOIN units AS u USING (unit_id), json_each(a.answers) AS j
    WHERE a.status <> 'skipped'
    UNION ALL
    SELECT a.batch, a.annotator_id, a.position, a.unit_id, u.question_id,
           a.role, a.repeat, j.key, json_extract(j.value, '$.value'), 'revised',
           a.active_ms / 1000.0, a.flag, a.note
    FROM assignments AS a JOIN units AS u USING (unit_id), json_each(a.revised) AS j
    WHERE a.status <> 'skipped';
