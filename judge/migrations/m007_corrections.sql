-- What `judge items import --correct` changed: one row for each value, with the old one and the row of the file that has the new
-- one. `id` is that of the item or passage, the unit of a gold label, or NAME/STAGE/ITEM of a ranking. Rows are only added.
CREATE TABLE corrections (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('item', 'passage', 'gold', 'ranking')),
    id TEXT NOT NULL,
    field TEXT NOT NULL,
    old TEXT,
    new TEXT,
    place TEXT NOT NULL,
    at TEXT NOT NULL
)

CREATE TRIGGER corrections_keep BEFORE UPDATE ON corrections
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

CREATE TRIGGER corrections_stay BEFORE DELETE ON corrections
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

-- The units whose shown text a correction changed, and when. A label that was given before is for the old text.
CREATE TABLE corrected_units (
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    at TEXT NOT NULL,
    PRIMARY KEY (unit_id, at)
) WITHOUT ROWID

CREATE TRIGGER corrected_units_keep BEFORE UPDATE ON corrected_units
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

CREATE TRIGGER corrected_units_stay BEFORE DELETE ON corrected_units
    BEGIN SELECT RAISE(ABORT, 'the log of corrections is append-only'); END

DROP VIEW label_conflicts

DROP VIEW resolved_labels

DROP VIEW counted_labels

-- A label whose time is not known was given before it was stored.
CREATE VIEW dated_labels AS
    SELECT s.*, EXISTS (SELECT 1 FROM corrected_units AS c WHERE c.unit_id = s.unit_id
        AND c.at >= coalesce(s.given, s.stored)) AS outdated
    FROM label_sources AS s

-- The rows that count: nobody decided against them, and those of a stopped person or for an old text only where nothing else
-- is there. A label that follows from one that was decided against does not count either. A label for an old text has the
-- layer `old_text`, which no estimate uses.
CREATE VIEW counted_labels AS
    SELECT s.unit_id, s.field, s.annotator_id, CASE WHEN s.outdated THEN 'old_text' ELSE s.layer END AS layer, s.repeat,
           s.source, s.value, s.rationale, s.derived_from, s.given, s.stored, s.layer = 'revised' AS revised
    FROM dated_labels AS s
    WHERE NOT (s.outdated AND s.layer = 'revised') AND NOT EXISTS (
        SELECT 1 FROM label_resolutions AS r
        WHERE r.annotator_id = s.annotator_id AND r.unit_id = s.unit_id AND r.repeat = s.repeat
          AND r.source = s.source AND r.given IS s.given
          AND (r.field = s.field AND r.value = s.value OR r.field = s.derived_from))
      AND NOT EXISTS (
        SELECT 1 FROM dated_labels AS o
        WHERE o.annotator_id = s.annotator_id AND o.field = s.field AND o.unit_id = s.unit_id
          AND o.repeat = s.repeat AND o.layer <> 'revised' AND NOT o.outdated
          AND (s.outdated OR s.layer = 'stopped' AND o.layer <> 'stopped'))

CREATE VIEW resolved_labels AS
    SELECT unit_id, field, annotator_id, repeat,
           CASE WHEN count(*) = count(given) THEN json_extract(min(json_array(given, layer)), '$[1]')
                WHEN sum(layer = 'assisted') THEN 'assisted' WHEN sum(layer = 'undeclared') THEN 'undeclared'
                ELSE min(layer) END AS layer,
           min(value) AS value, max(rationale) AS rationale, max(derived_from) AS derived_from,
           json_group_array(source) AS sources
    FROM counted_labels GROUP BY annotator_id, field, unit_id, repeat, revised
    HAVING min(value) = max(value)

-- Labels in conflict: how many values the sources give, none of which counts. Labels for an old text need no decision.
CREATE VIEW label_conflicts AS
    SELECT annotator_id, field, unit_id, repeat, count(DISTINCT value) AS n, max(derived_from) AS derived_from
    FROM counted_labels WHERE NOT revised AND layer <> 'old_text' GROUP BY annotator_id, field, unit_id, repeat
    HAVING min(value) <> max(value)
