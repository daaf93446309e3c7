-- Which label counts where sources contradict each other, a second time: the log of the decisions in `label_resolutions`.
-- `how` is `lead`, or `latest` for an import with --latest. `kept` is a source of the label `value`. `rejected` lists [source, label, given] of each label that
-- does not count. Rows are only added, and `seq` has no gap, so that `annotate verify` finds a decision that was
-- changed or deleted by hand.
CREATE TABLE label_rulings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    field TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL,
    how TEXT NOT NULL CHECK (how IN ('lead', 'latest')),
    value TEXT NOT NULL,
    kept TEXT NOT NULL,
    rejected TEXT NOT NULL CHECK (json_valid(rejected)),
    at TEXT NOT NULL
);

CREATE INDEX idx_label_rulings ON label_rulings(annotator_id, field, unit_id, repeat);

CREATE TRIGGER label_rulings_keep BEFORE UPDATE ON label_rulings
    BEGIN SELECT RAISE(ABORT, 'rulings are append-only'); END;

CREATE TRIGGER label_rulings_stay BEFORE DELETE ON label_rulings
    BEGIN SELECT RAISE(ABORT, 'rulings are append-only'); END;

-- An import with --latest decided before it was itself recorded, and a lead decides later.
INSERT INTO label_rulings (annotator_id, field, unit_id, repeat, how, value, kept, rejected, at)
    SELECT r.annotator_id, r.field, r.unit_id, r.repeat,
           CASE WHEN EXISTS (SELECT 1 FROM label_imports AS i WHERE r.kept GLOB 'import:*'
                AND i.import_id = substr(r.kept, 8, 26) AND i.imported_at >= r.at) THEN 'latest' ELSE 'lead' END,
           coalesce((SELECT max(s.value) FROM label_sources AS s WHERE s.annotator_id = r.annotator_id
                AND s.field = r.field AND s.unit_id = r.unit_id AND s.repeat = r.repeat AND s.source = r.kept
                AND s.layer <> 'revised'), ''),
           r.kept, json_group_array(json_array(r.source, r.value, r.given)), r.at
    FROM label_resolutions AS r GROUP BY r.annotator_id, r.field, r.unit_id, r.repeat, r.kept, r.at
    ORDER BY min(r.rowid)
