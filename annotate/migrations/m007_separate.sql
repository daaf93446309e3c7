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
