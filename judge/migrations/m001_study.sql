CREATE TABLE imports (
    import_id TEXT PRIMARY KEY,
    format TEXT NOT NULL,
    dataset TEXT,
    files TEXT NOT NULL CHECK (json_valid(files)),
    maps TEXT NOT NULL CHECK (json_valid(maps)),
    label_maps TEXT NOT NULL CHECK (json_valid(label_maps)),
    counts TEXT NOT NULL CHECK (json_valid(counts)),
    skipped TEXT NOT NULL CHECK (json_valid(skipped)),
    imported_at TEXT NOT NULL
);

CREATE TABLE items (
    item_id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    question_id TEXT NOT NULL,
    question TEXT,
    question_date TEXT,
    claim TEXT,
    reference_answers TEXT CHECK (reference_answers IS NULL OR json_valid(reference_answers)),
    options TEXT CHECK (options IS NULL OR json_valid(options)),
    correct TEXT,
    pair_id TEXT,
    polarity TEXT CHECK (polarity IN ('original', 'counter')),
    meta TEXT NOT NULL CHECK (json_valid(meta)),
    content_sha TEXT NOT NULL,
    import_id TEXT NOT NULL REFERENCES imports(import_id)
);

CREATE INDEX idx_items_question ON items(question_id);

CREATE TABLE passages (
    passage_id TEXT PRIMARY KEY,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    position INTEGER NOT NULL,
    title TEXT,
    text TEXT NOT NULL,
    date TEXT,
    source TEXT,
    meta TEXT NOT NULL CHECK (json_valid(meta)),
    content_sha TEXT NOT NULL,
    import_id TEXT NOT NULL REFERENCES imports(import_id)
);

CREATE UNIQUE INDEX idx_passages_item ON passages(item_id, position);

CREATE TABLE units (
    unit_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    question_id TEXT NOT NULL,
    passage_id TEXT REFERENCES passages(passage_id)
);

CREATE INDEX idx_units_item ON units(item_id);

CREATE TABLE annotators (
    annotator_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'judge', 'gold', 'adjudicated')),
    profile TEXT NOT NULL CHECK (json_valid(profile))
);

CREATE TABLE labels (
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    field TEXT NOT NULL,
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    layer TEXT NOT NULL DEFAULT 'first',
    repeat INTEGER NOT NULL DEFAULT 0,
    value TEXT NOT NULL,
    distribution TEXT CHECK (distribution IS NULL OR json_valid(distribution)),
    rationale TEXT,
    derived_from TEXT,
    PRIMARY KEY (annotator_id, field, unit_id, layer, repeat)
) WITHOUT ROWID;

CREATE INDEX idx_labels_unit ON labels(unit_id, field);

CREATE TABLE prompts (
    sha256 TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tasks (
    task TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    front_matter TEXT NOT NULL CHECK (json_valid(front_matter)),
    template TEXT NOT NULL
);

CREATE TABLE runs (
    run_id TEXT PRIMARY KEY REFERENCES annotators(annotator_id),
    task TEXT NOT NULL REFERENCES tasks(task),
    model TEXT NOT NULL,
    resolved_model TEXT,
    options TEXT NOT NULL CHECK (json_valid(options)),
    provider TEXT NOT NULL CHECK (json_valid(provider)),
    started TEXT NOT NULL,
    finished TEXT
);

CREATE TABLE requests (
    request_sha TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    base_url TEXT,
    prefix_sha TEXT NOT NULL REFERENCES prompts(sha256),
    schema_sha TEXT REFERENCES prompts(sha256),
    unit_sha TEXT NOT NULL,
    parameters TEXT NOT NULL CHECK (json_valid(parameters)),
    repeat INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE judgements (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ok', 'unparsed', 'refused', 'truncated', 'failed')),
    reply TEXT,
    reason TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    latency REAL,
    resolved_model TEXT,
    request_sha TEXT REFERENCES requests(request_sha),
    reused INTEGER NOT NULL DEFAULT 0,
    judged_at TEXT NOT NULL,
    PRIMARY KEY (run_id, unit_id, repeat, attempt)
) WITHOUT ROWID;

CREATE INDEX idx_judgements_request ON judgements(request_sha);

CREATE VIEW latest_judgements AS
    SELECT * FROM judgements AS j
    WHERE attempt = (
        SELECT max(attempt) FROM judgements AS k
        WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id AND k.repeat = j.repeat
    );

CREATE VIEW unit_texts AS
    SELECT u.rowid AS n, u.unit_id, u.kind, u.question_id, i.dataset, i.item_id, i.question, i.question_date,
           i.claim, i.reference_answers, i.options, p.passage_id, p.position, p.text AS passage,
           p.title AS passage_title, p.date AS passage_date, p.source AS passage_source
    FROM units AS u JOIN items AS i USING (item_id) LEFT JOIN passages AS p USING (passage_id);
