-- What a person did for the corrected text of a unit before another study had corrected it: after a merge, the correction at
-- the time `corrected` does not concern what the person did at the time `given` in the source. Rows are only added.
CREATE TABLE given_for_corrected (
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    source TEXT NOT NULL,
    given TEXT NOT NULL,
    corrected TEXT NOT NULL,
    PRIMARY KEY (unit_id, annotator_id, source, given, corrected)
) WITHOUT ROWID

CREATE TRIGGER given_for_corrected_keep BEFORE UPDATE ON given_for_corrected
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

CREATE TRIGGER given_for_corrected_stay BEFORE DELETE ON given_for_corrected
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

DROP VIEW dated_labels

-- A label whose time is not known was given before it was stored.
CREATE VIEW dated_labels AS
    SELECT s.*, EXISTS (SELECT 1 FROM corrected_units AS c WHERE c.unit_id = s.unit_id AND c.at >= coalesce(s.given, s.stored)
        AND NOT EXISTS (SELECT 1 FROM given_for_corrected AS g WHERE g.unit_id = s.unit_id AND g.annotator_id = s.annotator_id
            AND g.source = s.source AND g.given = coalesce(s.given, s.stored) AND g.corrected = c.at)) AS outdated
    FROM label_sources AS s
