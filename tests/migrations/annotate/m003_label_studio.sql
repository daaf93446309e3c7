BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'judge','m001_study','2026-11-22 01:07:48.333654+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'judge','m002_answers','2026-11-22 01:07:48.335756+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'judge','m003_embeddings','2026-11-22 01:07:48.348451+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'judge','m004_requests','2026-11-22 01:07:48.352876+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'annotate','m001_batches','2026-11-22 01:07:48.562186+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'annotate','m002_exchange','2026-11-22 01:07:48.563236+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'annotate','m003_label_studio','2026-11-22 01:07:48.563557+00:00');
CREATE TABLE annotators (
    annotator_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'judge', 'gold', 'adjudicated')),
    profile TEXT NOT NULL CHECK (json_valid(profile))
);
INSERT INTO "annotators" VALUES('gold','gold','{}');
INSERT INTO "annotators" VALUES('01M80CQ24D1VX5ENBDM84D27GG','judge','{"model":"scripted/test","task":"stance.v1"}');
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
INSERT INTO "assignments" VALUES('pilot','alice',1,'d:2/p0','sample',0,'done','{"stance":"support"}','{}','[["passage",0,7]]',NULL,'first',0,0,0,'2026-11-22T01:07:48.736Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',2,'d:0/p1','sample',0,'done','{"stance":"neutral"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T01:07:48.716Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',3,'d:1/p1','sample',0,'skipped','{}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T01:07:48.720Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',4,'d:0/p0','sample',0,'open','{}','{}','[]','odd',NULL,0,0,0,'2026-11-22T01:07:48.734Z','{}');
INSERT INTO "assignments" VALUES('pilot','alice',5,'d:2/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',1,'d:0/p0','sample',0,'done','{"stance":"refute"}','{}','[]',NULL,NULL,0,0,0,'2026-11-22T01:07:48.775Z','{}');
INSERT INTO "assignments" VALUES('pilot','bob',2,'d:2/p0','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',3,'d:0/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',4,'d:2/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
INSERT INTO "assignments" VALUES('pilot','bob',5,'d:1/p1','sample',0,'open','{}','{}','[]',NULL,NULL,0,0,0,NULL,'{}');
CREATE TABLE batch_units (
    batch TEXT NOT NULL REFERENCES batches(batch),
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    role TEXT NOT NULL CHECK (role IN ('sample', 'training', 'attention')),
    stratum TEXT,
    probability REAL,
    weight REAL,
    PRIMARY KEY (batch, unit_id)
) WITHOUT ROWID;
INSERT INTO "batch_units" VALUES('pilot','d:0/p0','sample','all',8.3333333333333337034e-01,1.2);
INSERT INTO "batch_units" VALUES('pilot','d:0/p1','sample','all',8.3333333333333337034e-01,1.2);
INSERT INTO "batch_units" VALUES('pilot','d:1/p1','sample','all',8.3333333333333337034e-01,1.2);
INSERT INTO "batch_units" VALUES('pilot','d:2/p0','sample','all',8.3333333333333337034e-01,1.2);
INSERT INTO "batch_units" VALUES('pilot','d:2/p1','sample','all',8.3333333333333337034e-01,1.2);
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
INSERT INTO "batches" VALUES('pilot','stance.v1','validation',3,'{"name":"pilot","annotators":["alice","bob"],"n":5,"by":null,"seed":3,"overlap":2,"repeats":0.0,"training":0,"attention":0.0,"by_question":null,"proportional":false,"queue":false,"reveal":false,"run":null,"where":null,"pass_mark":0.8,"frame":6}',NULL,NULL,'2026-11-22T01:07:48.598Z',NULL);
CREATE TABLE embeddings (
    embedder TEXT NOT NULL,
    text_sha TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, text_sha)
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
INSERT INTO "events" VALUES(1,'01M80CQ2AK0T93WZBV2X909D7N','pilot','alice',1,'label','stance','support',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.691Z');
INSERT INTO "events" VALUES(2,'01M80CQ2AXJB2560BAQ90QM3JG','pilot','alice',2,'label','stance','refute',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.701Z');
INSERT INTO "events" VALUES(3,'01M80CQ2B4HCYBEF1ACE0VMK2E','pilot','alice',2,'undo',NULL,NULL,NULL,'01M80CQ2AXJB2560BAQ90QM3JG',0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.708Z');
INSERT INTO "events" VALUES(4,'01M80CQ2BCAEK7BCX2VN4TSACY','pilot','alice',2,'label','stance','neutral',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.716Z');
INSERT INTO "events" VALUES(5,'01M80CQ2BG9RW4XFH3VTXY3MET','pilot','alice',3,'skip',NULL,NULL,NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.720Z');
INSERT INTO "events" VALUES(6,'01M80CQ2BR3VQE34WVBW6DAVJY','pilot','alice',1,'note',NULL,'first',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.728Z');
INSERT INTO "events" VALUES(7,'01M80CQ2BYGGD8TNNFBSEYTTC2','pilot','alice',4,'flag',NULL,'odd',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.734Z');
INSERT INTO "events" VALUES(8,'01M80CQ2C0BBWB2EEP4ZGC4HPD','pilot','alice',1,'span',NULL,'[["passage",0,7]]',NULL,NULL,0,0,'01M80CQ2A44AHDSFW6JXG6QB29','2026-11-22T01:07:48.736Z');
INSERT INTO "events" VALUES(9,'01M80CQ2D77B03Q29SECZH73ZH','pilot','bob',1,'label','stance','refute',NULL,NULL,0,0,'01M80CQ2CWAG41GZ25QEBSG037','2026-11-22T01:07:48.775Z');
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
INSERT INTO "imports" VALUES('01M80CQ2091ACEX5J27WFG347R','test',NULL,'{}','{}','{}','{"items":3,"passages":6,"labels":9,"unchanged":0}','[]','2026-11-22T01:07:48.361Z');
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
INSERT INTO "items" VALUES('d:0','d','d:0','Question 0?',NULL,'Claim number 0','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','fbb60881c8d4999de98057dfb4b1c43bfd1719157b3d48053f49498195d39bc4','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "items" VALUES('d:1','d','d:1','Question 1?',NULL,'Claim number 1','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','6d6b517b67c8df06c7c96dfdb425658c7a39b7d222f221cd7fd0131bca59512c','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "items" VALUES('d:2','d','d:2','Question 2?',NULL,'Claim number 2','["42"]',NULL,NULL,NULL,NULL,'{"secret":"CANARY-7f3a"}','80a0fcb60d5fa571f9c40821d39f4dc7926d1bbec81f6437e0eb6167d141f784','01M80CQ2091ACEX5J27WFG347R');
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
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:0/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:0/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:1/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:1/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:2/p0',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
INSERT INTO "judgements" VALUES('01M80CQ24D1VX5ENBDM84D27GG','d:2/p1',0,1,'ok','support CANARY-7f3a',NULL,NULL,NULL,NULL,0.1,NULL,NULL,0,'2026-11-22T01:07:48.524Z');
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
CREATE TABLE label_studio_annotations (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    annotation INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (batch, url, annotation),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID
;
CREATE TABLE label_studio_projects (
    batch TEXT NOT NULL REFERENCES batches(batch),
    url TEXT NOT NULL,
    project INTEGER NOT NULL,
    assisted INTEGER NOT NULL CHECK (assisted IN (0, 1)),
    run TEXT REFERENCES runs(run_id),
    created TEXT NOT NULL,
    PRIMARY KEY (batch, url)
) WITHOUT ROWID;
CREATE TABLE label_studio_tasks (
    batch TEXT NOT NULL,
    url TEXT NOT NULL,
    task INTEGER NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    pulled TEXT,
    PRIMARY KEY (batch, url, task),
    FOREIGN KEY (batch, url) REFERENCES label_studio_projects(batch, url) ON DELETE CASCADE
) WITHOUT ROWID;
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
INSERT INTO "labels" VALUES('d:0/p0','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:1/p0','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:1/p1','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:2/p0','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:2/p1','stance','01M80CQ24D1VX5ENBDM84D27GG','first',0,'support','{"support":0.7,"refute":0.15,"neutral":0.15,"unassigned":0.0}','because CANARY-7f3a',NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','alice','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2/p0','stance','alice','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p0','stance','bob','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0','claim_verdict','gold','first',0,'false',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1','claim_verdict','gold','first',0,'true',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2','claim_verdict','gold','first',0,'false',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p0','stance','gold','first',0,'support',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:0/p1','stance','gold','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p0','stance','gold','first',0,'refute',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:1/p1','stance','gold','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2/p0','stance','gold','first',0,'neutral',NULL,NULL,NULL);
INSERT INTO "labels" VALUES('d:2/p1','stance','gold','first',0,'support',NULL,NULL,NULL);
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
INSERT INTO "passages" VALUES('d:0/p0','d:0',0,'Title 0.0','Passage 0 of claim 0 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','8baa3dce78f10e9dee45fa6454d5885ff5c12ccb3664558b760fe8826d1541e6','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "passages" VALUES('d:0/p1','d:0',1,'Title 0.1','Passage 1 of claim 0 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','e674f72eb5298e19b20eaf78808b25a09f37f90d114a89c8269a5c54408e70ea','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "passages" VALUES('d:1/p0','d:1',0,'Title 1.0','Passage 0 of claim 1 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','41e8e84413a5299229810f977883cb2585e77e792b4587489e5e4a5a50cfe767','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "passages" VALUES('d:1/p1','d:1',1,'Title 1.1','Passage 1 of claim 1 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','a5c1561d632a0147c4858b42272e309f646aad8c4e55b6a1bfbb8d77c269a749','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "passages" VALUES('d:2/p0','d:2',0,'Title 2.0','Passage 0 of claim 2 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','e3b226f44cfa5e97efd8799df2908d2ca22510357c7f8a79d52680afefc674e2','01M80CQ2091ACEX5J27WFG347R');
INSERT INTO "passages" VALUES('d:2/p1','d:2',1,'Title 2.1','Passage 1 of claim 2 says 42. It is so.','2024-01-02','web','{"secret":"CANARY-7f3a"}','38dc96e3214a6b7453b88b93dec888bc2b9b7e3f92ab0f3c6659312f0d5faf39','01M80CQ2091ACEX5J27WFG347R');
CREATE TABLE prompts (
    sha256 TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;
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
);
INSERT INTO "runs" VALUES('01M80CQ24D1VX5ENBDM84D27GG','stance.v1','scripted/test',NULL,'{}','{}','2026-11-22T01:07:48.493Z',NULL);
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    person TEXT NOT NULL,
    version TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT
);
INSERT INTO "sessions" VALUES('01M80CQ2A44AHDSFW6JXG6QB29','pilot','alice','alice','0.1.0','2026-11-22T01:07:48.680Z',NULL);
INSERT INTO "sessions" VALUES('01M80CQ2CWAG41GZ25QEBSG037','pilot','bob','bob','0.1.0','2026-11-22T01:07:48.765Z',NULL);
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',9);
COMMIT;
