"""The schema of a study, as sqlite-utils migrations (set `judge`). Never edit one that has shipped.

The tables and their columns are described by docs/reference.py (the page "The study's schema"); the order of a study's
units is the rowid order of `units`, which is the order of import.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

NAMES = (
    "m001_study",
    "m002_answers",
    "m003_embeddings",
    "m004_requests",
    "m005_identity",
    "m006_counts",
    "m007_splits",
    "m008_derived",
    "m009_frozen",
    "m010_jobs",
    "m011_outside",
)
"""The migrations of this version, in order; `_m001_study` is the function of the first."""
SET = "judge"


def is_current(conn: sqlite3.Connection) -> bool:
    """Whether nothing is left to migrate; plain SQL, because sqlite_utils is slow to import."""
    return applied(conn) == list(NAMES)


def unknown(conn: sqlite3.Connection) -> list[str]:
    """Migrations of this set that the file has and this version has not: it was made by a newer one."""
    return [name for name in applied(conn) if name not in NAMES]


def applied(conn: sqlite3.Connection, of: str = SET) -> list[str]:
    """Names of the migrations of a set that the file has, in order; empty for a new file."""
    exists = conn.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone()
    if not exists:
        return []
    query = "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid"
    return [row[0] for row in conn.execute(query, [of])]


def migrate(conn: sqlite3.Connection) -> None:
    """Bring a study up to date."""
    perform(conn, SET, {name: globals()[f"_{name}"] for name in NAMES})


def perform(conn: sqlite3.Connection, of: str, steps: Mapping[str, Callable[[Any], None]]) -> None:
    """Apply the steps of a set that are missing in one transaction: a kill or a second process finds all or nothing."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations(of)
    for name, step in steps.items():
        migrations(name=name)(step)
    db = Database(conn)
    conn.execute("BEGIN IMMEDIATE")
    try:
        migrations.apply(db)
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _m001_study(db: Any) -> None:
    _execute(db, _STUDY)


def _m002_answers(db: Any) -> None:
    _execute(db, _ANSWERS)


def _m003_embeddings(db: Any) -> None:
    _execute(db, _EMBEDDINGS)


def _m004_requests(db: Any) -> None:
    _execute(db, _REQUESTS)


def _m005_identity(db: Any) -> None:
    _execute(db, _IDENTITY)


def _m006_counts(db: Any) -> None:
    for statement in _COUNTS:
        db.execute(statement)


def _m007_splits(db: Any) -> None:
    for statement in _SPLITS:
        db.execute(statement)


def _m008_derived(db: Any) -> None:
    _execute(db, _DERIVED)


def _m009_frozen(db: Any) -> None:
    for statement in _FROZEN:
        db.execute(statement)


def _m010_jobs(db: Any) -> None:
    _execute(db, _JOBS)


def _m011_outside(db: Any) -> None:
    # What the model put on no label, where the server held the answer to the labels (0 to 1).
    db.execute("ALTER TABLE judgements ADD COLUMN outside_mass REAL")


def _execute(db: Any, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            db.execute(statement)


_STUDY = """
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
    FROM units AS u JOIN items AS i USING (item_id) LEFT JOIN passages AS p USING (passage_id)
"""

_ANSWERS = """
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
ALTER TABLE units ADD COLUMN answer_id TEXT REFERENCES answers(answer_id);
ALTER TABLE units ADD COLUMN span TEXT CHECK (span IS NULL OR json_valid(span));
CREATE INDEX idx_units_answer ON units(answer_id) WHERE answer_id IS NOT NULL;
CREATE INDEX idx_items_pair ON items(dataset, pair_id) WHERE pair_id IS NOT NULL;
INSERT INTO units (unit_id, kind, item_id, question_id, span)
    SELECT o.item_id || '~' || c.item_id, 'pair', o.item_id, o.question_id, json_object('counter', c.item_id)
    FROM items AS o JOIN items AS c ON c.dataset = o.dataset AND c.pair_id = o.pair_id
    WHERE o.polarity = 'original' AND c.polarity = 'counter' ORDER BY o.rowid, c.rowid;
DROP VIEW unit_texts;
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
         LEFT JOIN answers AS a ON a.answer_id = u.answer_id
"""

_EMBEDDINGS = """
CREATE TABLE embeddings (
    embedder TEXT NOT NULL,
    text_sha TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, text_sha)
)
"""

# A request names the unit it was sent for, in place of an index over all judgements: the hashes are in
# no order, so every commit of a run had to change that many more pages.
_REQUESTS = """
ALTER TABLE requests ADD COLUMN run_id TEXT;
ALTER TABLE requests ADD COLUMN unit_id TEXT;
UPDATE requests SET (run_id, unit_id) = (
    SELECT j.run_id, j.unit_id FROM judgements AS j JOIN latest_judgements AS k USING (run_id, unit_id, repeat)
    WHERE j.request_sha = requests.request_sha AND j.repeat = requests.repeat
    ORDER BY k.status = 'ok' DESC, k.status = 'failed', j.reused LIMIT 1);
DROP INDEX idx_judgements_request
"""

# What changes the meaning of an answer makes a run; where it was asked and how far are facts of each attempt.
# The runs and the requests of before (version 1) had both in one; `request_version` says how theirs were hashed.
_IDENTITY = """
ALTER TABLE runs ADD COLUMN identity TEXT CHECK (identity IS NULL OR json_valid(identity));
ALTER TABLE runs ADD COLUMN request_version INTEGER NOT NULL DEFAULT 1;
UPDATE runs SET identity = json_remove(options, '$.answers', '$.base_url', '$.max_output_tokens');
ALTER TABLE judgements ADD COLUMN base_url TEXT;
ALTER TABLE judgements ADD COLUMN max_output_tokens INTEGER;
ALTER TABLE judgements ADD COLUMN timeout REAL;
ALTER TABLE judgements ADD COLUMN cost REAL;
UPDATE judgements SET (base_url, max_output_tokens) = (
    SELECT json_extract(r.options, '$.base_url'), json_extract(r.options, '$.max_output_tokens')
    FROM runs AS r WHERE r.run_id = judgements.run_id) WHERE reused = 0
"""

# How many units of a run stand how, kept as judgements come in: a run of millions is not counted anew each time it
# goes on. What is not `ok` is few, and found without reading the rest. One statement each: triggers hold semicolons.
_COUNTS = (
    """CREATE TABLE run_counts (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (run_id, repeat, status)
) WITHOUT ROWID""",
    "INSERT INTO run_counts SELECT run_id, repeat, status, count(*) FROM latest_judgements GROUP BY 1, 2, 3",
    "CREATE INDEX idx_judgements_not_ok ON judgements(run_id, repeat, status, unit_id, attempt) WHERE status <> 'ok'",
    """CREATE TRIGGER count_judgement AFTER INSERT ON judgements
    WHEN NOT EXISTS (SELECT 1 FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
        AND o.repeat = NEW.repeat AND o.attempt > NEW.attempt)
    BEGIN
        UPDATE run_counts SET units = units - 1
        WHERE run_id = NEW.run_id AND repeat = NEW.repeat AND status = (
            SELECT o.status FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
            AND o.repeat = NEW.repeat AND o.attempt < NEW.attempt ORDER BY o.attempt DESC LIMIT 1);
        INSERT INTO run_counts VALUES (NEW.run_id, NEW.repeat, NEW.status, 1)
        ON CONFLICT DO UPDATE SET units = units + 1;
    END""",
)

# Which questions a task's judges are taught on, chosen on and tested on, and every look at the test. Both only grow:
# a split that could be drawn again after a look, or a look that could be taken back, would prove nothing.
_SPLITS = (
    """CREATE TABLE splits (
    task_id TEXT PRIMARY KEY,
    field TEXT NOT NULL,
    reference TEXT NOT NULL,
    shares TEXT NOT NULL CHECK (json_valid(shares)),
    seed INTEGER NOT NULL,
    made TEXT NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE split_questions (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    question_id TEXT NOT NULL,
    part TEXT NOT NULL CHECK (part IN ('learn', 'tune', 'test')),
    PRIMARY KEY (task_id, question_id)
) WITHOUT ROWID""",
    """CREATE TABLE split_looks (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    look INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    runs TEXT NOT NULL CHECK (json_valid(runs)),
    reference TEXT NOT NULL,
    level REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (task_id, look)
) WITHOUT ROWID""",
    *(
        f"""CREATE TRIGGER keep_{table}_{verb.lower()} BEFORE {verb} ON {table}
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END"""
        for table in ("splits", "split_questions", "split_looks")
        for verb in ("UPDATE", "DELETE")
    ),
)
# Runs made from runs without a call, and the questions whose labels they were fitted on; `fold` is NULL where what
# labels a question was fitted on it.
_DERIVED = """
ALTER TABLE runs ADD COLUMN derived_from TEXT CHECK (derived_from IS NULL OR json_valid(derived_from));
CREATE TABLE fitted_on (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    question_id TEXT NOT NULL,
    fold INTEGER,
    PRIMARY KEY (run_id, question_id)
) WITHOUT ROWID
"""
# INSERT OR REPLACE takes a row away without its DELETE trigger.
_FROZEN = tuple(
    f"""CREATE TRIGGER keep_{table}_insert BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE {" AND ".join(f"{name} = NEW.{name}" for name in key)})
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END"""
    for table, key in (
        ("splits", ("task_id",)),
        ("split_questions", ("task_id", "question_id")),
        ("split_looks", ("task_id", "look")),
    )
)
# Batches at a provider. A job is what one command asks of one run: its requests (while `open` nobody else asks
# them), and the files in which they are posted, each with how far it came: what is about to be posted is stored
# before it is. `folder` is seen from the study's own; a job without `base_url` is for another program to run.
_JOBS = """
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
CREATE INDEX idx_job_requests_sha ON job_requests(request_sha)
"""
