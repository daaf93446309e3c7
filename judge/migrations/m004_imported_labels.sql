-- What imports and votes of items said, a second time: the log of the rows in `label_sources` that no batch explains.
-- A label that is declared blind or assisted later is added with its new layer. Rows are only added, so that
-- `annotate verify` finds a row of `label_sources` that was changed or deleted by hand.
CREATE TABLE imported_labels (
    source TEXT NOT NULL,
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    field TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL,
    layer TEXT NOT NULL,
    value TEXT NOT NULL,
    given TEXT,
    PRIMARY KEY (source, annotator_id, field, unit_id, repeat, layer)
) WITHOUT ROWID;

CREATE TRIGGER imported_labels_keep BEFORE UPDATE ON imported_labels
    BEGIN SELECT RAISE(ABORT, 'the log of imported labels is append-only'); END;

CREATE TRIGGER imported_labels_stay BEFORE DELETE ON imported_labels
    BEGIN SELECT RAISE(ABORT, 'the log of imported labels is append-only'); END;

INSERT INTO imported_labels
    SELECT source, annotator_id, field, unit_id, repeat, layer, value, given FROM label_sources
    WHERE source GLOB 'items:*' OR source GLOB 'import:*'
