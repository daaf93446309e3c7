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
