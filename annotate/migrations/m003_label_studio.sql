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
