-- What a good answer to an item contains (TREC RAG). Each nugget with each answer is a unit of the kind `nugget`. The importance
-- is in no unit, because whoever labels one must not see it.
CREATE TABLE nuggets (
    item_id TEXT NOT NULL REFERENCES items(item_id),
    n INTEGER NOT NULL,
    text TEXT NOT NULL,
    importance TEXT NOT NULL CHECK (importance IN ('vital', 'okay')),
    import_id TEXT NOT NULL REFERENCES imports(import_id),
    PRIMARY KEY (item_id, n)
)

CREATE UNIQUE INDEX idx_nuggets_text ON nuggets(item_id, text)

DROP VIEW unit_texts

CREATE VIEW unit_texts AS
    SELECT u.rowid AS n, u.unit_id, u.kind, u.question_id, i.dataset, i.item_id, i.question, i.question_date,
           i.claim, i.reference_answers, i.options, p.passage_id, p.position, p.text AS passage,
           p.title AS passage_title, p.date AS passage_date, p.source AS passage_source,
           u.answer_id, a.system AS answer_system, a.condition AS answer_condition, a.text AS answer,
           CASE WHEN u.kind IN ('sentence', 'citation')
                THEN substr(a.text, json_extract(u.span, '$.start') + 1,
                            json_extract(u.span, '$.end') - json_extract(u.span, '$.start')) END AS sentence,
           CASE u.kind WHEN 'claim' THEN json_extract(u.span, '$.claim') END AS answer_claim,
           CASE u.kind WHEN 'nugget' THEN json_extract(u.span, '$.nugget') END AS nugget,
           CASE u.kind WHEN 'pair' THEN (SELECT c.claim FROM items AS c
                WHERE c.item_id = json_extract(u.span, '$.counter')) END AS counter_claim,
           CASE WHEN u.answer_id IS NOT NULL THEN (SELECT b.text FROM answers AS b
                WHERE b.item_id = u.item_id AND b.system = 'human' AND b.answer_id <> u.answer_id
                ORDER BY b.rowid LIMIT 1) END AS baseline_answer,
           CASE WHEN u.kind <> 'passage' THEN (SELECT nullif(json_group_array(q.passage_id), '[]')
                FROM (SELECT passage_id FROM passages WHERE item_id = u.item_id ORDER BY position) AS q)
                END AS passages,
           CASE WHEN a.context IS NOT NULL THEN nullif(a.context, '[]')
                WHEN u.answer_id IS NOT NULL THEN (SELECT nullif(json_group_array(q.passage_id), '[]')
                FROM (SELECT passage_id FROM passages WHERE item_id = u.item_id ORDER BY position) AS q)
                END AS context,
           nullif(CASE WHEN u.kind IN ('sentence', 'citation') THEN json_extract(u.span, '$.cited')
                ELSE a.cited END, '[]') AS cited_passages,
           CASE u.kind WHEN 'citation' THEN (SELECT nullif(json_group_array(r.value), '[]')
                FROM json_each(u.span, '$.cited') AS r WHERE r.value <> u.passage_id) END
                AS other_cited_passages
    FROM units AS u JOIN items AS i USING (item_id) LEFT JOIN passages AS p USING (passage_id)
         LEFT JOIN answers AS a ON a.answer_id = u.answer_id
