-- What people said of a unit, by source: one row for each person, field, unit, repeat and source. Sources are
--   items:IMPORT         votes that came with items               batch:NAME         the event log of a batch
--   import:IMPORT        labels imported without a batch          adjudication:NAME  the lead's decisions in a batch
--   study:0.2.0          labels of a study of 0.2.0 that no batch of it explains
-- Labels of runs (source `run`: the table `runs` says which kind) and gold (`items:IMPORT`) have one source each and stand
-- in `labels` alone.
-- `given` is when the person gave the label (NULL: not known), `stored` when it came into the study.
-- A source adds and removes its own rows only. What people's labels are follows from all of them: `resolved_labels`.
CREATE TABLE label_sources (
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    field TEXT NOT NULL,
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    layer TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    source TEXT NOT NULL,
    value TEXT NOT NULL,
    rationale TEXT,
    derived_from TEXT,
    given TEXT,
    stored TEXT NOT NULL,
    PRIMARY KEY (annotator_id, field, unit_id, repeat, source, layer)
) WITHOUT ROWID;

-- Where sources contradict each other, a lead says which label counts. A row names one that does not, as it was: the
-- same source may say something else later, which is then compared anew. Rows are only added.
CREATE TABLE label_resolutions (
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    field TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    repeat INTEGER NOT NULL,
    source TEXT NOT NULL,
    value TEXT NOT NULL,
    given TEXT,
    kept TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE UNIQUE INDEX idx_label_resolutions
    ON label_resolutions(annotator_id, unit_id, repeat, source, field, value, coalesce(given, ''));

CREATE TRIGGER label_resolutions_keep BEFORE UPDATE ON label_resolutions
    BEGIN SELECT RAISE(ABORT, 'resolutions are append-only'); END;

CREATE TRIGGER label_resolutions_stay BEFORE DELETE ON label_resolutions
    BEGIN SELECT RAISE(ABORT, 'resolutions are append-only'); END;

-- The rows that count: nobody decided against them, and a stopped person's only where nothing else is there. A label
-- that follows from one that was decided against does not count either.
CREATE VIEW counted_labels AS
    SELECT s.*, s.layer = 'revised' AS revised FROM label_sources AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM label_resolutions AS r
        WHERE r.annotator_id = s.annotator_id AND r.unit_id = s.unit_id AND r.repeat = s.repeat
          AND r.source = s.source AND r.given IS s.given
          AND (r.field = s.field AND r.value = s.value OR r.field = s.derived_from))
      AND (s.layer <> 'stopped' OR NOT EXISTS (
        SELECT 1 FROM label_sources AS o
        WHERE o.annotator_id = s.annotator_id AND o.field = s.field AND o.unit_id = s.unit_id
          AND o.repeat = s.repeat AND o.layer NOT IN ('stopped', 'revised')));

-- What follows: where all sources agree, one label with the layer of the earliest, or the strictest layer where a time is
-- not known. Where they differ there is no label.
CREATE VIEW resolved_labels AS
    SELECT unit_id, field, annotator_id, repeat,
           CASE WHEN count(*) = count(given) THEN json_extract(min(json_array(given, layer)), '$[1]')
                WHEN sum(layer = 'assisted') THEN 'assisted' WHEN sum(layer = 'undeclared') THEN 'undeclared'
                ELSE min(layer) END AS layer,
           min(value) AS value, max(rationale) AS rationale, max(derived_from) AS derived_from,
           json_group_array(source) AS sources
    FROM counted_labels GROUP BY annotator_id, field, unit_id, repeat, revised
    HAVING min(value) = max(value);

-- Labels in conflict: how many values the sources give, none of which counts.
CREATE VIEW label_conflicts AS
    SELECT annotator_id, field, unit_id, repeat, count(DISTINCT value) AS n, max(derived_from) AS derived_from
    FROM counted_labels WHERE NOT revised GROUP BY annotator_id, field, unit_id, repeat
    HAVING min(value) <> max(value);

ALTER TABLE labels ADD COLUMN sources TEXT NOT NULL DEFAULT '["run"]' CHECK (json_valid(sources));

UPDATE labels SET sources = '["items:0.2.0"]'
    WHERE annotator_id IN (SELECT annotator_id FROM annotators WHERE kind = 'gold');

INSERT INTO label_sources
    SELECT unit_id, field, annotator_id, layer, repeat, 'study:0.2.0', value, rationale, derived_from, NULL,
           strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    FROM labels WHERE annotator_id IN (SELECT annotator_id FROM annotators WHERE kind IN ('human', 'adjudicated'));

DELETE FROM labels WHERE annotator_id IN (SELECT annotator_id FROM annotators WHERE kind IN ('human', 'adjudicated'));

INSERT INTO labels (unit_id, field, annotator_id, repeat, layer, value, rationale, derived_from, sources)
    SELECT * FROM resolved_labels;

-- Whoever changes `label_sources` has changed `labels` with it: no other statement writes people's labels there.
CREATE VIEW unresolved AS SELECT annotator_id, field, unit_id, repeat FROM label_sources;

CREATE TRIGGER resolve_label INSTEAD OF INSERT ON unresolved
    BEGIN
        DELETE FROM labels WHERE annotator_id = NEW.annotator_id AND field = NEW.field AND unit_id = NEW.unit_id
            AND repeat = NEW.repeat;
        INSERT INTO labels (unit_id, field, annotator_id, repeat, layer, value, rationale, derived_from, sources)
            SELECT * FROM resolved_labels WHERE annotator_id = NEW.annotator_id AND field = NEW.field
            AND unit_id = NEW.unit_id AND repeat = NEW.repeat;
    END;

CREATE TRIGGER source_added AFTER INSERT ON label_sources
    BEGIN INSERT INTO unresolved VALUES (NEW.annotator_id, NEW.field, NEW.unit_id, NEW.repeat); END;

CREATE TRIGGER source_removed AFTER DELETE ON label_sources
    BEGIN INSERT INTO unresolved VALUES (OLD.annotator_id, OLD.field, OLD.unit_id, OLD.repeat); END;

CREATE TRIGGER source_changed AFTER UPDATE ON label_sources
    BEGIN INSERT INTO unresolved VALUES (NEW.annotator_id, NEW.field, NEW.unit_id, NEW.repeat); END;
