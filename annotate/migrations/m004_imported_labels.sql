-- Labels of a study of 0.2.0 that none of its batches explains, which is known since `m002_sources`.
INSERT OR IGNORE INTO imported_labels
    SELECT source, annotator_id, field, unit_id, repeat, layer, value, given FROM label_sources
    WHERE source = 'study:0.2.0'
