-- Batches at a provider. A job is what one command asks of one run: its requests (while `open` nobody else asks
-- them), and the files in which they are posted, each with how far it came: what is about to be posted is stored
-- before it is. `folder` is seen from the study's own; a job without `base_url` is for another program to run.
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
;
