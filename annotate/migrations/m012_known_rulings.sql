-- The times of the earlier decisions on the label that a decision knew, because its study had them. NULL, as in decisions that
-- were stored before this column: all that are older.
ALTER TABLE label_rulings ADD COLUMN knew TEXT CHECK (knew IS NULL OR json_valid(knew))

-- Each label that a decision rejects.
CREATE VIEW rejections AS
    SELECT r.annotator_id, r.field, r.unit_id, r.repeat, json_extract(j.value, '$[0]') AS source,
           json_extract(j.value, '$[1]') AS value, json_extract(j.value, '$[2]') AS given, r.how, r.kept, r.at, r.knew
    FROM label_rulings AS r JOIN json_each(r.rejected) AS j

-- The labels that do not count by all decisions together. A label counts again if another decision kept its value, and no
-- decision against the label knew that, or was known by it (the label was out already when that value was kept). This happens if leads of two studies decide differently, and the studies are merged.
CREATE VIEW standing_rejections AS
    SELECT annotator_id, field, unit_id, repeat, source, value, given, how, kept, max(at) AS at FROM rejections AS r
    WHERE NOT EXISTS (
        SELECT 1 FROM label_rulings AS k
        WHERE k.annotator_id = r.annotator_id AND k.field = r.field AND k.unit_id = r.unit_id AND k.repeat = r.repeat
          AND k.value = r.value AND NOT EXISTS (
            SELECT 1 FROM rejections AS b
            WHERE b.annotator_id = r.annotator_id AND b.field = r.field AND b.unit_id = r.unit_id AND b.repeat = r.repeat
              AND b.source = r.source AND b.value = r.value AND b.given IS r.given
              AND (CASE WHEN b.knew IS NULL THEN k.at < b.at ELSE k.at IN (SELECT e.value FROM json_each(b.knew) AS e) END
                OR CASE WHEN k.knew IS NULL THEN b.at < k.at ELSE b.at IN (SELECT e.value FROM json_each(k.knew) AS e) END)))
    GROUP BY annotator_id, field, unit_id, repeat, source, value, given
