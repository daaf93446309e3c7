-- Which labels of 0.2.0 are of which batch follows from how its units stand. What no batch explains stays as it was, and
-- where the two differ the label is in conflict. `label_changes` lists the labels of which the status is another one now.
CREATE TABLE old_labels AS
    SELECT unit_id, field, annotator_id, repeat, json_group_object(layer, value) AS said
    FROM label_sources WHERE source = 'study:0.2.0' AND layer <> 'revised' GROUP BY 3, 2, 1, 4;

CREATE TABLE batch_answers AS
    SELECT a.batch, a.unit_id, j.key AS field, a.annotator_id,
           coalesce((SELECT s.value FROM json_each(a.layers) AS s WHERE s.key = j.key), 'first') AS layer, a.repeat,
           CASE a.role WHEN 'adjudication' THEN 'adjudication:' ELSE 'batch:' END || a.batch AS source, j.value,
           CASE a.role WHEN 'adjudication' THEN a.note END AS rationale, a.position
    FROM assignments AS a, json_each(a.answers) AS j
    WHERE a.role IN ('sample', 'repeat', 'adjudication') AND a.status <> 'skipped'
    UNION ALL
    SELECT a.batch, a.unit_id, j.key, a.annotator_id, 'revised', a.repeat,
           CASE a.role WHEN 'adjudication' THEN 'adjudication:' ELSE 'batch:' END || a.batch,
           json_extract(j.value, '$.value'), json_extract(j.value, '$.reason'), a.position
    FROM assignments AS a, json_each(a.revised) AS j
    WHERE a.role IN ('sample', 'repeat', 'adjudication') AND a.status <> 'skipped'
      AND NOT EXISTS (SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id);

CREATE TABLE given_answers AS
    SELECT b.*, coalesce((SELECT e.at FROM events AS e WHERE e.batch = b.batch AND e.annotator_id = b.annotator_id
            AND e.position = b.position AND e.field = b.field AND e.kind IN ('label', 'keep', 'revise')
            AND (e.kind = 'label') = (b.layer <> 'revised')
            AND NOT EXISTS (SELECT 1 FROM events AS x WHERE x.undoes = e.event_id) ORDER BY e.seq DESC LIMIT 1),
           strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) AS given
    FROM batch_answers AS b;

INSERT OR IGNORE INTO label_sources
    SELECT unit_id, field, annotator_id, layer, repeat, source, value, rationale, NULL, given, given FROM given_answers;

-- What follows from an answer, alone or with the gold of its unit, else of its item.
INSERT OR IGNORE INTO label_sources
    SELECT g.unit_id, d.key, g.annotator_id, g.layer, g.repeat, g.source, t.value, NULL, g.field, g.given, g.given
    FROM given_answers AS g JOIN batches AS b ON b.batch = g.batch JOIN tasks AS k ON k.task = b.task
    JOIN units AS u ON u.unit_id = g.unit_id, json_each(k.front_matter, '$.derive') AS d, json_each(d.value, '$.table') AS t
    WHERE json_extract(d.value, '$.from') = g.field AND t.key = g.value || CASE
        WHEN json_extract(d.value, '$.gold') IS NULL THEN '' ELSE '|' || coalesce(
            (SELECT l.value FROM labels AS l WHERE l.annotator_id = 'gold' AND l.layer = 'first' AND l.repeat = 0
             AND l.field = json_extract(d.value, '$.gold') AND l.unit_id = u.unit_id),
            (SELECT l.value FROM labels AS l WHERE l.annotator_id = 'gold' AND l.layer = 'first' AND l.repeat = 0
             AND l.field = json_extract(d.value, '$.gold') AND l.unit_id = u.item_id)) END;

DELETE FROM label_sources AS s WHERE source = 'study:0.2.0' AND EXISTS (
    SELECT 1 FROM label_sources AS b WHERE b.annotator_id = s.annotator_id AND b.field = s.field
    AND b.unit_id = s.unit_id AND b.repeat = s.repeat AND b.layer = s.layer AND b.value = s.value AND b.source <> s.source);

CREATE TABLE label_changes (
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    field TEXT NOT NULL,
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    repeat INTEGER NOT NULL,
    before TEXT NOT NULL CHECK (json_valid(before)),
    after TEXT NOT NULL CHECK (json_valid(after)),
    PRIMARY KEY (annotator_id, field, unit_id, repeat)
) WITHOUT ROWID;

INSERT INTO label_changes
    SELECT s.unit_id, s.field, s.annotator_id, s.repeat, coalesce(o.said, '{}') AS before,
           coalesce((SELECT json_group_object(l.layer, l.value) FROM labels AS l WHERE l.annotator_id = s.annotator_id
                AND l.field = s.field AND l.unit_id = s.unit_id AND l.repeat = s.repeat AND l.layer <> 'revised'), '{}')
                AS after
    FROM (SELECT DISTINCT unit_id, field, annotator_id, repeat FROM label_sources WHERE layer <> 'revised') AS s
    LEFT JOIN old_labels AS o ON o.unit_id = s.unit_id AND o.field = s.field AND o.annotator_id = s.annotator_id
        AND o.repeat = s.repeat
    WHERE before <> after;

DROP TABLE given_answers;

DROP TABLE batch_answers;

DROP TABLE old_labels
