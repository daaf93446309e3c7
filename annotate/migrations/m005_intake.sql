ALTER TABLE label_studio_tasks ADD COLUMN created TEXT

ALTER TABLE label_studio_annotations ADD COLUMN unit_id TEXT

ALTER TABLE label_studio_annotations ADD COLUMN annotator_id TEXT

CREATE TABLE event_sources (
    event_id TEXT PRIMARY KEY REFERENCES events(event_id),
    source TEXT NOT NULL
) WITHOUT ROWID

CREATE INDEX idx_event_sources ON event_sources(source)

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
)

ALTER TABLE batches ADD COLUMN exposure TEXT NOT NULL DEFAULT 'unknown' CHECK (exposure IN ('unknown', 'kept'))

CREATE TABLE exposures (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    person TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    what TEXT NOT NULL CHECK (what IN ('text', 'gold', 'judge', 'labels')),
    field TEXT NOT NULL DEFAULT '',
    batch TEXT NOT NULL DEFAULT '',
    how TEXT NOT NULL CHECK (how IN ('sitting', 'pack', 'push', 'pull', 'import')),
    at TEXT NOT NULL
)

CREATE UNIQUE INDEX idx_exposures ON exposures(person, unit_id, what, field, batch, how)

CREATE TRIGGER exposures_keep BEFORE UPDATE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END

CREATE TRIGGER exposures_stay BEFORE DELETE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END
