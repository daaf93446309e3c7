-- One row for each import, with its files and their hashes.
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

CREATE INDEX idx_items_pair ON items(dataset, pair_id) WHERE pair_id IS NOT NULL;

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

-- The answers of systems to the items.
CREATE TABLE answers (
    answer_id TEXT PRIMARY KEY,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    system TEXT NOT NULL,
    condition TEXT NOT NULL,
    text TEXT NOT NULL,
    cited TEXT NOT NULL CHECK (json_valid(cited)),
    context TEXT CHECK (context IS NULL OR json_valid(context)),
    meta TEXT NOT NULL CHECK (json_valid(meta)),
    content_sha TEXT NOT NULL,
    origin TEXT NOT NULL
);

CREATE UNIQUE INDEX idx_answers_item ON answers(item_id, system, condition);

CREATE TABLE rankings (
    name TEXT NOT NULL,
    stage TEXT NOT NULL,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    rank INTEGER NOT NULL,
    passage_id TEXT NOT NULL REFERENCES passages(passage_id),
    score REAL,
    PRIMARY KEY (name, stage, item_id, rank)
) WITHOUT ROWID;

-- What is labelled: an item, a passage, an answer or a part of an answer (`span`). The order is that of import.
CREATE TABLE units (
    unit_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    question_id TEXT NOT NULL,
    passage_id TEXT REFERENCES passages(passage_id),
    answer_id TEXT REFERENCES answers(answer_id),
    span TEXT CHECK (span IS NULL OR json_valid(span))
);

CREATE INDEX idx_units_item ON units(item_id);

CREATE INDEX idx_units_answer ON units(answer_id) WHERE answer_id IS NOT NULL;

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

-- Texts that many requests share, stored once by their hash.
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

-- `identity` has the settings that change the meaning of an answer; where and how far it was asked are facts of each
-- judgement. Runs of request version 1 had both in `options`. `derived_from` is set for a run that was made from other
-- runs without a call of a model.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY REFERENCES annotators(annotator_id),
    task TEXT NOT NULL REFERENCES tasks(task),
    model TEXT NOT NULL,
    resolved_model TEXT,
    options TEXT NOT NULL CHECK (json_valid(options)),
    provider TEXT NOT NULL CHECK (json_valid(provider)),
    started TEXT NOT NULL,
    finished TEXT,
    identity TEXT CHECK (identity IS NULL OR json_valid(identity)),
    request_version INTEGER NOT NULL DEFAULT 1,
    derived_from TEXT CHECK (derived_from IS NULL OR json_valid(derived_from))
);

-- A request names the unit that it was sent for. An index of the judgements by the request's hash would do the same, but
-- hashes are in no order, so every commit of a run would change many more pages.
CREATE TABLE requests (
    request_sha TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    base_url TEXT,
    prefix_sha TEXT NOT NULL REFERENCES prompts(sha256),
    schema_sha TEXT REFERENCES prompts(sha256),
    unit_sha TEXT NOT NULL,
    parameters TEXT NOT NULL CHECK (json_valid(parameters)),
    repeat INTEGER NOT NULL,
    run_id TEXT,
    unit_id TEXT
) WITHOUT ROWID;

-- `outside_mass` is the probability (0 to 1) that the model put on no label, where the server masked all other tokens.
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
    base_url TEXT,
    max_output_tokens INTEGER,
    timeout REAL,
    cost REAL,
    outside_mass REAL,
    PRIMARY KEY (run_id, unit_id, repeat, attempt)
) WITHOUT ROWID;

-- What is not `ok` is rare, and this index finds it without reading the rest.
CREATE INDEX idx_judgements_not_ok ON judgements(run_id, repeat, status, unit_id, attempt) WHERE status <> 'ok';

CREATE VIEW latest_judgements AS
    SELECT * FROM judgements AS j
    WHERE attempt = (
        SELECT max(attempt) FROM judgements AS k
        WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id AND k.repeat = j.repeat
    );

-- The number of units of a run by status, counted as judgements are added: a run of millions of units is not counted
-- again each time it is resumed.
CREATE TABLE run_counts (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (run_id, repeat, status)
) WITHOUT ROWID;

CREATE TRIGGER count_judgement AFTER INSERT ON judgements
    WHEN NOT EXISTS (SELECT 1 FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
        AND o.repeat = NEW.repeat AND o.attempt > NEW.attempt)
    BEGIN
        UPDATE run_counts SET units = units - 1
        WHERE run_id = NEW.run_id AND repeat = NEW.repeat AND status = (
            SELECT o.status FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
            AND o.repeat = NEW.repeat AND o.attempt < NEW.attempt ORDER BY o.attempt DESC LIMIT 1);
        INSERT INTO run_counts VALUES (NEW.run_id, NEW.repeat, NEW.status, 1)
        ON CONFLICT DO UPDATE SET units = units + 1;
    END;

-- What a derived run was fitted on; `fold` is NULL where the model that labels a question was fitted on it.
CREATE TABLE fitted_on (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    question_id TEXT NOT NULL,
    fold INTEGER,
    PRIMARY KEY (run_id, question_id)
) WITHOUT ROWID;

-- The questions of a task that its judges learn from, are chosen on and are tested on, and every look at the test. The
-- three tables only grow: a split that could be drawn again after a look, or a look that could be taken back, would
-- prove nothing.
CREATE TABLE splits (
    task_id TEXT PRIMARY KEY,
    field TEXT NOT NULL,
    reference TEXT NOT NULL,
    shares TEXT NOT NULL CHECK (json_valid(shares)),
    seed INTEGER NOT NULL,
    made TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE split_questions (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    question_id TEXT NOT NULL,
    part TEXT NOT NULL CHECK (part IN ('learn', 'tune', 'test')),
    PRIMARY KEY (task_id, question_id)
) WITHOUT ROWID;

CREATE TABLE split_looks (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    look INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    runs TEXT NOT NULL CHECK (json_valid(runs)),
    reference TEXT NOT NULL,
    level REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (task_id, look)
) WITHOUT ROWID;

CREATE TRIGGER keep_splits_update BEFORE UPDATE ON splits
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_splits_delete BEFORE DELETE ON splits
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_update BEFORE UPDATE ON split_questions
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_delete BEFORE DELETE ON split_questions
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_update BEFORE UPDATE ON split_looks
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_delete BEFORE DELETE ON split_looks
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

-- INSERT OR REPLACE deletes a row without its DELETE trigger.
CREATE TRIGGER keep_splits_insert BEFORE INSERT ON splits
    WHEN EXISTS (SELECT 1 FROM splits WHERE task_id = NEW.task_id)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_insert BEFORE INSERT ON split_questions
    WHEN EXISTS (SELECT 1 FROM split_questions WHERE task_id = NEW.task_id AND question_id = NEW.question_id)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_insert BEFORE INSERT ON split_looks
    WHEN EXISTS (SELECT 1 FROM split_looks WHERE task_id = NEW.task_id AND look = NEW.look)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

-- Batches at a provider. A job is what one command asks of one run: its requests (while `open`, no other command asks
-- them), and the files in which they are posted, each with its progress. What is about to be posted is stored before it
-- is posted. `folder` is relative to the study's own; a job without `base_url` is for another program to run.
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    vendor TEXT NOT NULL CHECK (vendor IN ('openai', 'anthropic')),
    model TEXT NOT NULL,
    base_url TEXT,
    folder TEXT NOT NULL,
    max_output_tokens INTEGER NOT NULL,
    most_tokens INTEGER NOT NULL,
    most_cost REAL,
    price TEXT CHECK (price IS NULL OR json_valid(price)),
    state TEXT NOT NULL CHECK (state IN ('writing', 'open', 'done')),
    made TEXT NOT NULL
);

CREATE TABLE job_parts (
    job_id TEXT NOT NULL REFERENCES jobs(job_id),
    part INTEGER NOT NULL,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('written', 'posting', 'submitted', 'ended', 'fetched', 'read')),
    upload_id TEXT,
    batch_id TEXT,
    intended TEXT,
    submitted TEXT,
    status TEXT,
    PRIMARY KEY (job_id, part)
) WITHOUT ROWID;

CREATE TABLE job_requests (
    job_id TEXT NOT NULL REFERENCES jobs(job_id),
    custom_id TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    part INTEGER NOT NULL,
    request_sha TEXT NOT NULL REFERENCES requests(request_sha),
    most_tokens INTEGER NOT NULL,
    most_cost REAL,
    state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'released')),
    reason TEXT,
    PRIMARY KEY (job_id, custom_id, unit_id)
) WITHOUT ROWID;

CREATE INDEX idx_job_requests_sha ON job_requests(request_sha);

-- The texts of a unit, as templates, screens, exports and `--where` see them.
CREATE VIEW unit_texts AS
    SELECT u.rowid AS n, u.unit_id, u.kind, u.question_id, i.dataset, i.item_id, i.question, i.question_date,
           i.claim, i.reference_answers, i.options, p.passage_id, p.position, p.text AS passage,
           p.title AS passage_title, p.date AS passage_date, p.source AS passage_source,
           u.answer_id, a.system AS answer_system, a.condition AS answer_condition, a.text AS answer,
           CASE WHEN u.kind IN ('sentence', 'citation')
                THEN substr(a.text, json_extract(u.span, '$.start') + 1,
                            json_extract(u.span, '$.end') - json_extract(u.span, '$.start')) END AS sentence,
           CASE u.kind WHEN 'claim' THEN json_extract(u.span, '$.claim') END AS answer_claim,
           CASE u.kind WHEN 'pair' THEN (SELECT c.claim FROM items AS c
                WHERE c.item_id = json_extract(u.span, '$.counter')) END AS counter_claim,
           CASE WHEN u.answer_id IS NOT NULL THEN (SELECT b.text FROM answers AS b
                WHERE b.item_id = u.item_id AND b.system = 'human' AND b.answer_id <> u.answer_id
                ORDER BY b.rowid LIMIT 1) END AS baseline_answer,
           CASE WHEN u.kind <> 'passage' THEN (SELECT nullif(json_group_array(q.passage_id), '[]')
                FROM (SELECT passage_id FROM passages WHERE item_id = u.item_id ORDER BY position) AS q)
                END AS passages,
           CASE WHEN a.context IS NOT NULL THEN nullif(a.context, '[]')
                WHEN u.answer_id IS NOT NULL THEN (SELECT nullif(json_group_array(q.passage_id), '[]')
                FROM (SELECT passage_id FROM passages WHERE item_id = u.item_id ORDER BY position) AS q)
                END AS context,
           nullif(CASE WHEN u.kind IN ('sentence', 'citation') THEN json_extract(u.span, '$.cited')
                ELSE a.cited END, '[]') AS cited_passages,
           CASE u.kind WHEN 'citation' THEN (SELECT nullif(json_group_array(r.value), '[]')
                FROM json_each(u.span, '$.cited') AS r WHERE r.value <> u.passage_id) END
                AS other_cited_passages
    FROM units AS u JOIN items AS i USING (item_id) LEFT JOIN passages AS p USING (passage_id)
         LEFT JOIN answers AS a ON a.answer_id = u.answer_id;
