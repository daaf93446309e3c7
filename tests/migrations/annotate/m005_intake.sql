BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'judge','m001_study','2026-11-22 03:01:37.741965+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'judge','m002_answers','2026-11-22 03:01:37.743213+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'judge','m003_embeddings','2026-11-22 03:01:37.743410+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'judge','m004_requests','2026-11-22 03:01:37.748424+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'judge','m005_identity','2026-11-22 03:01:37.750396+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'annotate','m001_batches','2026-11-22 03:01:37.907354+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'annotate','m002_exchange','2026-11-22 03:01:37.921388+00:00');
INSERT INTO "_sqlite_migrations" VALUES(8,'annotate','m003_label_studio','2026-11-22 03:01:37.921949+00:00');
INSERT INTO "_sqlite_migrations" VALUES(9,'annotate','m004_shown','2026-11-22 03:01:37.923114+00:00');
INSERT INTO "_sqlite_migrations" VALUES(10,'annotate','m005_intake','2026-11-22 03:01:37.933290+00:00');
CREATE TABLE annotators (
    annotator_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'judge', 'gold', 'adjudicated')),
    profile TEXT NOT NULL CHECK (json_valid(profile))
);
INSERT INTO "annotators" VALUES('gold','gold','{}');
INSERT INTO "annotators" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','judge','{"model":"scripted/test","task":"stance.v1"}');
INSERT INTO "annotators" VALUES('alice','human','{}');
INSERT INTO "annotators" VALUES('bob','human','{}');
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
    updated TEXT, layers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(layers)),
    PRIMARY KEY (batch, annotator_id, position)
) WITHOUT ROWID;
INSERT INTO "assignments" VALUES('pilot','alice',1,'d:1/p0','sample',0,'done','{"stance":"support"}','{}','[]',NULL,'first',0,0,0,'2026-11-22T03:01:38.117Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',2,'d:0/p1','sample',0,'done','{"stance":"neutral"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T03:01:38.108Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',3,'d:3/p0','sample',0,'skipped','{}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T03:01:38.125Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',4,'d:3/p1','sample',0,'open','{}','{}','[["passage",0,7]]','odd',NULL,0,0,0,'2026-11-22T03:01:38.144Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',5,'d:1/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','alice',6,'d:0/p0','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',1,'d:1/p1','sample',0,'done','{"stance":"refute"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T03:01:38.198Z','{}');
INSERT INTO "assignments" VALUES('pilot','bob',2,'d:0/p0','sample',0,'done','{"stance":"support"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T03:01:38.223Z','{}');
INSERT INTO "assignments" VALUES('pilot','bob',3,'d:0/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',4,'d:3/p0','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',5,'d:1/p0','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',6,'d:3/p1','sample',0,'done','{"stance":"neutral"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T03:01:40.699Z','{}');
CREATE TABLE batch_units (
    batch TEXT NOT NULL REFERENCES batches(batch),
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    role TEXT NOT NULL CHECK (role IN ('sample', 'training', 'attention')),
    stratum TEXT,
    probability REAL,
    weight REAL,
    PRIMARY KEY (batch, unit_id)
) WITHOUT ROWID;
INSERT INTO "batch_units" VALUES('pilot','d:0/p0','sample','all',0.75,1.33333333333333325931e+00);
INSERT INTO "batch_units" VALUES('pilot','d:0/p1','sample','all',0.75,1.33333333333333325931e+00);
INSERT INTO "batch_units" VALUES('pilot','d:1/p0','sample','all',0.75,1.33333333333333325931e+00);
INSERT INTO "batch_units" VALUES('pilot','d:1/p1','sample','all',0.75,1.33333333333333325931e+00);
INSERT INTO "batch_units" VALUES('pilot','d:3/p0','sample','all',0.75,1.33333333333333325931e+00);
INSERT INTO "batch_units" VALUES('pilot','d:3/p1','sample','all',0.75,1.33333333333333325931e+00);
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
, exposure TEXT NOT NULL DEFAULT 'unknown' CHECK (exposure IN ('unknown', 'kept')));
INSERT INTO "batches" VALUES('pilot','stance.v1','validation',0,'{"name":"pilot","annotators":["alice","bob"],"n":6,"by":null,"seed":0,"overlap":2,"repeats":0.0,"training":0,"attention":0.0,"by_question":null,"proportional":false,"queue":false,"reveal":false,"run":null,"where":null,"pass_mark":0.8,"allow_exposed":false,"frame":8}',NULL,NULL,'2026-11-22T03:01:37.974Z',NULL,'kept');
CREATE TABLE embeddings (
    embedder TEXT NOT NULL,
    text_sha TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, text_sha)
);
CREATE TABLE event_sources (
    event_id TEXT PRIMARY KEY REFERENCES events(event_id),
    source TEXT NOT NULL
) WITHOUT ROWID;
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
, shown_ms INTEGER);
INSERT INTO "events" VALUES(1,'01M80K7FMWQG43ATNM3JDM19R6','pilot','alice',1,'label','stance','support',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.076Z',NULL);
INSERT INTO "events" VALUES(2,'01M80K7FN4KKDBDD77TT860H6E','pilot','alice',2,'label','stance','refute',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.084Z',NULL);
INSERT INTO "events" VALUES(3,'01M80K7FNNZCTYRAA8PWBXVK7G','pilot','alice',2,'undo',NULL,NULL,NULL,'01M80K7FN4KKDBDD77TT860H6E',0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.101Z',NULL);
INSERT INTO "events" VALUES(4,'01M80K7FNW1VJV06B58NF2F7DA','pilot','alice',2,'label','stance','neutral',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.108Z',NULL);
INSERT INTO "events" VALUES(5,'01M80K7FP4RK4KZ0C8C6GPJCX1','pilot','alice',1,'note',NULL,'first',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.116Z',NULL);
INSERT INTO "events" VALUES(6,'01M80K7FPC2N2NT1JJFNPF40Q5','pilot','alice',3,'skip',NULL,NULL,NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.124Z',NULL);
INSERT INTO "events" VALUES(7,'01M80K7FPR9GBP87ZJCSCXVPYT','pilot','alice',4,'flag',NULL,'odd',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.136Z',NULL);
INSERT INTO "events" VALUES(8,'01M80K7FQ0BE78C22C22QEZAW3','pilot','alice',4,'span',NULL,'[["passage",0,7]]',NULL,NULL,0,0,'01M80K7FKNZCJBR5TMXQBCREHK','2026-11-22T03:01:38.144Z',NULL);
INSERT INTO "events" VALUES(9,'01M80K7FRPNMSG5ZYTGBSS3XS9','pilot','bob',1,'label','stance','refute',NULL,NULL,0,0,'01M80K7FQXE9YM7F09JQ2XM72Q','2026-11-22T03:01:38.198Z',NULL);
INSERT INTO "events" VALUES(10,'01M80K7FSEG92NPRZPXS866DR8','pilot','bob',2,'label','stance','support',NULL,NULL,0,0,'01M80K7FQXE9YM7F09JQ2XM72Q','2026-11-22T03:01:38.222Z',NULL);
INSERT INTO "events" VALUES(11,'c85323c53a4003df84151b92bad2fdea','pilot','bob',6,'label','stance','neutral','blind',NULL,0,0,'01M80K7J6TXAMJ7HGV4W76R01Y','2026-11-22T03:01:40.698Z',NULL);
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
INSERT INTO "exposures" VALUES(1,'bob','d:3/p1','text','','pilot','import','2026-11-22T03:01:40.699Z');
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
INSERT INTO "imports" VALUES('01M80K7FCT98KNQC0GHDZ147H0','test',NULL,'{}','{}','{}','{"items":4,"passages":8,"labels":12,"unchanged":0}','[]','2026-11-22T03:01:37.818Z');
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
INSERT INTO "items" VALUES('d:0','d','d:0','Question 0?',NULL,'Claim number 0','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','fbb60881c8d4999de98057dfb4b1c43bfd1719157b3d48053f49498195d39bc4','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "items" VALUES('d:1','d','d:1','Question 1?',NULL,'Claim number 1','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','6d6b517b67c8df06c7c96dfdb425658c7a39b7d222f221cd7fd0131bca59512c','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "items" VALUES('d:2','d','d:2','Question 2?',NULL,'Claim number 2','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','80a0fcb60d5fa571f9c40821d39f4dc7926d1bbec81f6437e0eb6167d141f784','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "items" VALUES('d:3','d','d:3','Question 3?',NULL,'Claim number 3','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','f267161eb097afcaeacb0956c58d0569a49168aa41a080ea52aa741be7eb2be1','01M80K7FCT98KNQC0GHDZ147H0');
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
    judged_at TEXT NOT NULL, base_url TEXT, max_output_tokens INTEGER, timeout REAL, cost REAL,
    PRIMARY KEY (run_id, unit_id, repeat, attempt)
) WITHOUT ROWID;
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:0/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:0/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:1/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:1/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:2/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:2/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:3/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
INSERT INTO "judgements" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','d:3/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T03:01:37.880Z',NULL,NULL,NULL,NULL);
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
INSERT INTO "label_imports" VALUES('01M80K7J6V680AT074FN8HH684','csv','pilot','blind','[{"path":"study/rows.csv","sha256":"000f4f8d4d83ee12157211db821e30030736ee8054430b6f9cba26bcd64c0805"}]','["01M80K7J6TXAMJ7HGV4W76R01Y"]','{"labels":1,"replaced":0,"skips":0,"spans":0,"notes":0,"flags":0,"held":1,"unproven":1,"blindness":{"blind":1},"units":1}','2026-11-22T03:01:40.699Z');
CREATE TABLE label_studio_annotations (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    annotation INTEGER NOT NULL,
    task INTEGER NOT NULL, unit_id TEXT, annotator_id TEXT,
    PRIMARY KEY (batch, url, annotation),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID
;
INSERT INTO "label_studio_annotations" VALUES('pilot','http://127.0.0.1:8080',5,11,'d:0/p0','alice');
CREATE TABLE label_studio_projects (
    batch TEXT NOT NULL REFERENCES batches(batch),
    url TEXT NOT NULL,
    project INTEGER NOT NULL,
    assisted INTEGER NOT NULL CHECK (assisted IN (0, 1)),
    run TEXT REFERENCES runs(run_id),
    created TEXT NOT NULL,
    PRIMARY KEY (batch, url)
) WITHOUT ROWID;
INSERT INTO "label_studio_projects" VALUES('pilot','http://127.0.0.1:8080',3,0,NULL,'2026-11-20T10:00:00.000Z');
CREATE TABLE label_studio_tasks (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    task INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    pulled TEXT, created TEXT,
    PRIMARY KEY (batch, url, task),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID;
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',11,'d:0/p0','2026-11-20T11:00:00Z','2026-11-20T10:00:01Z');
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',12,'d:0/p1','2026-11-20T11:00:00Z','2026-11-20T10:00:01Z');
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',13,'d:1/p0',NULL,NULL);
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',14,'d:1/p1',NULL,NULL);
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',15,'d:3/p0',NULL,NULL);
INSERT INTO "label_studio_tasks" VALUES('pilot','http://127.0.0.1:8080',16,'d:3/p1',NULL,NULL);
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
INSERT INTO "labels" VALUES('d:0/p0','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:1/p0','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:1/p1','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:2/p0','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:2/p1','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:3/p0','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:3/p1','stance','01M80K7FE3PSEA3QXN8DDNVW79','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','alice','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p0','stance','alice','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p0','stance','bob','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p1','stance','bob','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:3/p1','stance','bob','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0','claim_verdict','gold','first',0,'false',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1','claim_verdict','gold','first',0,'true',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2','claim_verdict','gold','first',0,'false',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:3','claim_verdict','gold','first',0,'true',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p0','stance','gold','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','gold','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p0','stance','gold','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p1','stance','gold','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2/p0','stance','gold','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2/p1','stance','gold','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:3/p0','stance','gold','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:3/p1','stance','gold','first',0,'refute',NULL,NULL,NULL);
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
INSERT INTO "passages" VALUES('d:0/p0','d:0',0,'Title 0.0','Passage 0 of claim 0 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','8baa3dce78f10e9dee45fa6454d5885ff5c12ccb3664558b760fe8826d1541e6','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:0/p1','d:0',1,'Title 0.1','Passage 1 of claim 0 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','e674f72eb5298e19b20eaf78808b25a09f37f90d114a89c8269a5c54408e70ea','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:1/p0','d:1',0,'Title 1.0','Passage 0 of claim 1 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','41e8e84413a5299229810f977883cb2585e77e792b4587489e5e4a5a50cfe767','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:1/p1','d:1',1,'Title 1.1','Passage 1 of claim 1 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','a5c1561d632a0147c4858b42272e309f646aad8c4e55b6a1bfbb8d77c269a749','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:2/p0','d:2',0,'Title 2.0','Passage 0 of claim 2 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','e3b226f44cfa5e97efd8799df2908d2ca22510357c7f8a79d52680afefc674e2','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:2/p1','d:2',1,'Title 2.1','Passage 1 of claim 2 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','38dc96e3214a6b7453b88b93dec888bc2b9b7e3f92ab0f3c6659312f0d5faf39','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:3/p0','d:3',0,'Title 3.0','Passage 0 of claim 3 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','1eec59dd223378159f222e3cd475d82cf8b30a4f69ea3f2eb1ed89323567fc72','01M80K7FCT98KNQC0GHDZ147H0');
INSERT INTO "passages" VALUES('d:3/p1','d:3',1,'Title 3.1','Passage 1 of claim 3 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','71e6256b1476f304a88c941f13667667a20b19bbc6e1f12af2a6e70071873fd8','01M80K7FCT98KNQC0GHDZ147H0');
CREATE TABLE prompts (
    sha256 TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;
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
INSERT INTO "quarantine" VALUES(1,'6c81a0aabef7760e17eaefe23ab74f38','pilot','csv','study/rows.csv:2','mallory','d:3/p1','person','mallory is none of the people of batch ''pilot'' (alice, bob): say who that is with --map-annotator mallory=NAME, or take new people in with --new-people','{"annotator":"mallory","answers":{"stance":"support"},"at":null,"blind":null,"flag":null,"layers":{},"note":null,"repeat":0,"seconds":null,"skipped":false,"source":"","spans":null,"unit":"d:3/p1"}','2026-11-22T03:01:40.697Z','open',NULL,NULL);
CREATE TABLE rankings (
    name TEXT NOT NULL,
    stage TEXT NOT NULL,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    rank INTEGER NOT NULL,
    passage_id TEXT NOT NULL REFERENCES passages(passage_id),
    score REAL,
    PRIMARY KEY (name, stage, item_id, rank)
) WITHOUT ROWID;
CREATE TABLE requests (
    request_sha TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    base_url TEXT,
    prefix_sha TEXT NOT NULL REFERENCES prompts(sha256),
    schema_sha TEXT REFERENCES prompts(sha256),
    unit_sha TEXT NOT NULL,
    parameters TEXT NOT NULL CHECK (json_valid(parameters)),
    repeat INTEGER NOT NULL
, run_id TEXT, unit_id TEXT) WITHOUT ROWID;
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY REFERENCES annotators(annotator_id),
    task TEXT NOT NULL REFERENCES tasks(task),
    model TEXT NOT NULL,
    resolved_model TEXT,
    options TEXT NOT NULL CHECK (json_valid(options)),
    provider TEXT NOT NULL CHECK (json_valid(provider)),
    started TEXT NOT NULL,
    finished TEXT
, identity TEXT CHECK (identity IS NULL OR json_valid(identity)), request_version INTEGER NOT NULL DEFAULT 1);
INSERT INTO "runs" VALUES('01M80K7FE3PSEA3QXN8DDNVW79','stance.v1','scripted/test',NULL,'{}','{}','2026-11-22T03:01:37.859Z',NULL,'{}',2);
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    person TEXT NOT NULL,
    version TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT
);
INSERT INTO "sessions" VALUES('01M80K7FKNZCJBR5TMXQBCREHK','pilot','alice','alice','0.1.0','2026-11-22T03:01:38.041Z',NULL);
INSERT INTO "sessions" VALUES('01M80K7FQXE9YM7F09JQ2XM72Q','pilot','bob','bob','0.1.0','2026-11-22T03:01:38.175Z',NULL);
INSERT INTO "sessions" VALUES('01M80K7J6TXAMJ7HGV4W76R01Y','pilot','bob','bob','0.1.0 import csv','2026-11-22T03:01:40.699Z','2026-11-22T03:01:40.699Z');
CREATE TABLE tasks (
    task TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    front_matter TEXT NOT NULL CHECK (json_valid(front_matter)),
    template TEXT NOT NULL
);
INSERT INTO "tasks" VALUES('stance.v1','stance',1,'6822908e933f6cacabad770262a08c5bc406e6715ce2f8e119623cb307304168','{"title":"Does the passage support or refute the claim?","unit":"passage","inputs":["claim","passage"],"optional_inputs":["passage_title"],"relevant":null,"shows_gold":[],"questions":[{"field":"stance","ask":"Does the passage support the claim, refute it, or neither?","labels":[{"value":"support","key":"s","meaning":"the passage gives evidence that the claim is true"},{"value":"refute","key":"r","meaning":"the passage gives evidence that the claim is false"},{"value":"neutral","key":"n","meaning":"the passage does not tell whether the claim is true"}],"level":"nominal","many":false}],"derive":{},"examples":[],"rationale":"none","citation":{"paper":"Fact or Fiction: Verifying Scientific Claims (SciFact)","year":2020,"url":"https://arxiv.org/abs/2004.14974","where":"Section 3; the three-way stance is also the detection step of ConfirmBiasRAG"},"guidelines":"Judge only by what the passage says, not by what you know.\n\n- **support**: a reader who trusts the passage would accept the claim.\n- **refute**: a reader who trusts the passage would reject the claim.\n- **neutral**: the passage is about something else, or leaves the claim open. Being on the same\n  topic is not enough.\n\nEvidence for part of a claim is support only when nothing in the passage speaks against the rest."}','---
title: Does the passage support or refute the claim?
unit: passage
inputs: [claim, passage]
optional_inputs: [passage_title]
questions:
  - field: stance
    ask: Does the passage support the claim, refute it, or neither?
    level: nominal
    labels:
      - {value: support, key: s, meaning: the passage gives evidence that the claim is true}
      - {value: refute, key: r, meaning: the passage gives evidence that the claim is false}
      - {value: neutral, key: n, meaning: the passage does not tell whether the claim is true}
citation:
  paper: "Fact or Fiction: Verifying Scientific Claims (SciFact)"
  year: 2020
  url: https://arxiv.org/abs/2004.14974
  where: Section 3; the three-way stance is also the detection step of ConfirmBiasRAG
guidelines: |
  Judge only by what the passage says, not by what you know.

  - **support**: a reader who trusts the passage would accept the claim.
  - **refute**: a reader who trusts the passage would reject the claim.
  - **neutral**: the passage is about something else, or leaves the claim open. Being on the same
    topic is not enough.

  Evidence for part of a claim is support only when nothing in the passage speaks against the rest.
---
You judge evidence. You are given a claim and one passage, and say whether the passage supports the
claim, refutes it, or does neither. Judge only by what the passage says, not by what you know.
<!-- unit -->
{{ claim }}
{% if passage_title %}
{{ passage_title }}
{% endif %}
{{ passage }}
{{ answer_cue }}
');
CREATE TABLE units (
    unit_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    item_id TEXT NOT NULL REFERENCES items(item_id),
    question_id TEXT NOT NULL,
    passage_id TEXT REFERENCES passages(passage_id)
, answer_id TEXT REFERENCES answers(answer_id), span TEXT CHECK (span IS NULL OR json_valid(span)));
INSERT INTO "units" VALUES('d:0','item','d:0','d:0',NULL,NULL,NULL);
INSERT INTO "units" VALUES('d:0/p0','passage','d:0','d:0','d:0/p0',NULL,NULL);
INSERT INTO "units" VALUES('d:0/p1','passage','d:0','d:0','d:0/p1',NULL,NULL);
INSERT INTO "units" VALUES('d:1','item','d:1','d:1',NULL,NULL,NULL);
INSERT INTO "units" VALUES('d:1/p0','passage','d:1','d:1','d:1/p0',NULL,NULL);
INSERT INTO "units" VALUES('d:1/p1','passage','d:1','d:1','d:1/p1',NULL,NULL);
INSERT INTO "units" VALUES('d:2','item','d:2','d:2',NULL,NULL,NULL);
INSERT INTO "units" VALUES('d:2/p0','passage','d:2','d:2','d:2/p0',NULL,NULL);
INSERT INTO "units" VALUES('d:2/p1','passage','d:2','d:2','d:2/p1',NULL,NULL);
INSERT INTO "units" VALUES('d:3','item','d:3','d:3',NULL,NULL,NULL);
INSERT INTO "units" VALUES('d:3/p0','passage','d:3','d:3','d:3/p0',NULL,NULL);
INSERT INTO "units" VALUES('d:3/p1','passage','d:3','d:3','d:3/p1',NULL,NULL);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX idx_items_question ON items(question_id);
CREATE UNIQUE INDEX idx_passages_item ON passages(item_id, position);
CREATE INDEX idx_units_item ON units(item_id);
CREATE INDEX idx_labels_unit ON labels(unit_id, field);
CREATE VIEW latest_judgements AS
    SELECT * FROM judgements AS j
    WHERE attempt = (
        SELECT max(attempt) FROM judgements AS k
        WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id AND k.repeat = j.repeat
    );
CREATE UNIQUE INDEX idx_answers_item ON answers(item_id, system, condition);
CREATE INDEX idx_units_answer ON units(answer_id) WHERE answer_id IS NOT NULL;
CREATE INDEX idx_items_pair ON items(dataset, pair_id) WHERE pair_id IS NOT NULL;
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
CREATE INDEX idx_assignments_status ON assignments(batch, annotator_id, status, position);
CREATE INDEX idx_assignments_unit ON assignments(batch, unit_id);
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
CREATE INDEX idx_event_sources ON event_sources(source);
CREATE UNIQUE INDEX idx_exposures ON exposures(person, unit_id, what, field, batch, how);
CREATE TRIGGER exposures_keep BEFORE UPDATE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END;
CREATE TRIGGER exposures_stay BEFORE DELETE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('exposures',1);
INSERT INTO "sqlite_sequence" VALUES('events',11);
COMMIT;
