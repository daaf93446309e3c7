-- One rule opens the units whose text was corrected: those that were labelled only before the latest correction. The rule is
-- applied to the units that are inserted into this view, after a correction, and after a merge with a study that has one.
CREATE VIEW corrected_seats AS SELECT DISTINCT unit_id FROM corrected_units

CREATE TRIGGER reopen_seats INSTEAD OF INSERT ON corrected_seats
    BEGIN
        UPDATE assignments SET status = 'open', answers = '{}', revised = '{}', spans = '[]', layers = '{}', locked = 0
        WHERE batch IN (SELECT batch FROM batches) AND unit_id = NEW.unit_id AND NOT EXISTS (
            SELECT 1 FROM events AS e WHERE e.batch = assignments.batch AND e.annotator_id = assignments.annotator_id
            AND e.position = assignments.position AND e.kind NOT IN ('flag', 'note')
            AND e.at > (SELECT max(c.at) FROM corrected_units AS c WHERE c.unit_id = NEW.unit_id));
    END

DROP TRIGGER reopen_corrected

-- Earlier labels of the unit stay in the log, and in `label_sources`.
CREATE TRIGGER reopen_corrected AFTER INSERT ON corrected_units
    BEGIN INSERT INTO corrected_seats VALUES (NEW.unit_id); END
