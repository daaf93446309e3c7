-- How often the text of its unit was corrected after each event, without the corrections that do not concern the event because
-- its study had the corrected text already.
CREATE VIEW event_corrections AS
    SELECT e.event_id, e.batch, e.annotator_id, e.position, a.unit_id, e.kind, e.at, (
        SELECT count(*) FROM corrected_units AS c WHERE c.unit_id = a.unit_id AND c.at >= e.at AND NOT EXISTS (
            SELECT 1 FROM given_for_corrected AS g WHERE g.unit_id = a.unit_id AND g.annotator_id = e.annotator_id
            AND g.source IN ('batch:' || e.batch, 'adjudication:' || e.batch) AND g.given = e.at AND g.corrected = c.at)
        ) AS outdated
    FROM events AS e JOIN assignments AS a USING (batch, annotator_id, position)

DROP TRIGGER reopen_seats

CREATE TRIGGER reopen_seats INSTEAD OF INSERT ON corrected_seats
    BEGIN
        UPDATE assignments SET status = 'open', answers = '{}', revised = '{}', spans = '[]', layers = '{}', locked = 0
        WHERE batch IN (SELECT batch FROM batches) AND unit_id = NEW.unit_id AND NOT EXISTS (
            SELECT 1 FROM event_corrections AS e WHERE e.batch = assignments.batch AND e.annotator_id = assignments.annotator_id
            AND e.position = assignments.position AND e.kind NOT IN ('flag', 'note') AND NOT e.outdated);
    END
