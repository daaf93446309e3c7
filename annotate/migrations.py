"""The schema of the human half, as sqlite-utils migrations (set `annotate`). Never edit one that has shipped.

events        what people did, append-only: triggers refuse changes, and rows for a closed batch
assignments   who labels what, in which order, and how it stands: a fold of that unit's events
batches, batch_units, sessions
batch_labels  view: one row a batch, annotator, unit and field, with layer, value and seconds
label_imports labels made elsewhere: one row an import that brought something new
label_studio_projects, _tasks, _annotations   where a batch was pushed, and what came from there;
              `person` is empty where one project serves all
event_sources which record of another program an event came from, so that it can be retracted with it
quarantine    incoming labels that did not prove themselves, with the reason; no number reads it
exposures     what a person was shown of a unit, append-only, over all batches, packs, pushes and imports
batch_changes what a lead did to a batch in flight, append-only
handed_over   seats in queues that were taken from somebody, so that a pack made before can still come back
stopped       people whose labels in a batch count no more, with the reason
"""

from __future__ import annotations

import sqlite3
from typing import Any

from judge.errors import StudyError
from judge.migrations import applied, perform

NAMES = (
    "m001_batches", "m002_exchange", "m003_label_studio", "m004_shown", "m005_intake", "m006_leads", "m007_separate",
)  # fmt: skip
SET = "annotate"


def ensure(conn: sqlite3.Connection, path: object) -> None:
    """Bring the tables of this set up to date in one transaction. Raises StudyError for a newer file."""
    found = applied(conn, SET)
    if newer := [name for name in found if name not in NAMES]:
        raise StudyError(f"{path}: made by a newer adjudge ({newer[0]}); upgrade to read it")
    if found == list(NAMES):
        return
    perform(conn, SET, {name: globals()[f"_{name}"] for name in NAMES})


def _m001_batches(db: Any) -> None:
    _execute(db, _BATCHES)


def _m002_exchange(db: Any) -> None:
    _execute(db, _EXCHANGE)


def _m003_label_studio(db: Any) -> None:
    _execute(db, _LABEL_STUDIO)


def _m004_shown(db: Any) -> None:
    _execute(db, _SHOWN)


def _m005_intake(db: Any) -> None:
    _execute(db, _INTAKE)


def _m006_leads(db: Any) -> None:
    _execute(db, _LEADS)


def _m007_separate(db: Any) -> None:
    _execute(db, _SEPARATE)


def _execute(db: Any, statements: str) -> None:
    for statement in statements.split("\n\n"):
        if statement.strip():
            db.execute(statement)


_BATCHES = """
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
"""

_EXCHANGE = """
ALTER TABLE assignments ADD COLUMN layers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(layers))

CREATE TABLE label_imports (
    import_id TEXT PRIMARY KEY,
    format TEXT NOT NULL,
    batch TEXT REFERENCES batches(batch),
    blind TEXT NOT NULL CHECK (blind IN ('blind', 'assisted', 'undeclared', 'mixed')),
    files TEXT NOT NULL CHECK (json_valid(files)),
    sessions TEXT NOT NULL CHECK (json_valid(sessions)),
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    imported_at TEXT NOT NULL
)

DROP VIEW batch_labels

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
    WHERE a.status <> 'skipped'
"""

_LABEL_STUDIO = """
CREATE TABLE label_studio_projects (
    batch TEXT NOT NULL REFERENCES batches(batch),
    url TEXT NOT NULL,
    project INTEGER NOT NULL,
    assisted INTEGER NOT NULL CHECK (assisted IN (0, 1)),
    run TEXT REFERENCES runs(run_id),
    created TEXT NOT NULL,
    PRIMARY KEY (batch, url)
) WITHOUT ROWID

CREATE TABLE label_studio_tasks (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    task INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    pulled TEXT,
    PRIMARY KEY (batch, url, task),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID

CREATE TABLE label_studio_annotations (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    annotation INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (batch, url, annotation),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID
"""

_SHOWN = """
ALTER TABLE events ADD COLUMN shown_ms INTEGER
"""

_INTAKE = """
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
"""

_LEADS = """
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
"""

_SEPARATE = """
CREATE TABLE old_projects AS SELECT * FROM label_studio_projects

CREATE TABLE old_tasks AS SELECT * FROM label_studio_tasks

CREATE TABLE old_annotations AS SELECT * FROM label_studio_annotations

DROP TABLE label_studio_annotations

DROP TABLE label_studio_tasks

DROP TABLE label_studio_projects

CREATE TABLE label_studio_projects (
    batch TEXT NOT NULL REFERENCES batches(batch),
    url TEXT NOT NULL,
    person TEXT NOT NULL DEFAULT '',
    project INTEGER NOT NULL,
    assisted INTEGER NOT NULL CHECK (assisted IN (0, 1)),
    run TEXT REFERENCES runs(run_id),
    created TEXT NOT NULL,
    PRIMARY KEY (batch, url, person)
) WITHOUT ROWID

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
) WITHOUT ROWID

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
) WITHOUT ROWID

INSERT INTO label_studio_projects (batch, url, project, assisted, run, created)
    SELECT batch, url, project, assisted, run, created FROM old_projects

INSERT INTO label_studio_tasks (batch, url, task, unit_id, pulled, created)
    SELECT batch, url, task, unit_id, pulled, created FROM old_tasks

INSERT INTO label_studio_annotations (batch, url, annotation, task, unit_id, annotator_id)
    SELECT batch, url, annotation, task, unit_id, annotator_id FROM old_annotations

DROP TABLE old_annotations

DROP TABLE old_tasks

DROP TABLE old_projects
"""
