-- The runs that a batch tests. They are chosen when the batch is drawn, and share one significance level. In earlier versions
-- the options of the batch had a list of judges, which a report could add.
CREATE TABLE batch_judges (
    batch TEXT NOT NULL REFERENCES batches(batch),
    run_id TEXT NOT NULL,
    PRIMARY KEY (batch, run_id)
) WITHOUT ROWID;

INSERT INTO batch_judges
    SELECT DISTINCT b.batch, j.value FROM batches AS b, json_each(b.options, '$.judges') AS j;

UPDATE batches SET options = json_remove(options, '$.judges');

-- A batch of an earlier version without such a list: no result of a judge on its units was shown yet.
INSERT INTO batch_judges
    SELECT b.batch, (SELECT r.run_id FROM runs AS r WHERE r.task = b.task AND r.derived_from IS NULL
                     AND json_extract(r.options, '$.tried') IS NULL ORDER BY r.started DESC, r.run_id DESC LIMIT 1) AS run_id
    FROM batches AS b WHERE b.batch NOT IN (SELECT batch FROM batch_judges)
    AND EXISTS (SELECT 1 FROM runs AS r WHERE r.task = b.task AND r.derived_from IS NULL
                AND json_extract(r.options, '$.tried') IS NULL);

-- A batch that was drawn before the task had a run tests the first run that is made. A command that only shows something
-- never adds a judge.
CREATE TRIGGER runs_tested AFTER INSERT ON runs
    WHEN NEW.derived_from IS NULL AND json_extract(NEW.options, '$.tried') IS NULL
    BEGIN INSERT INTO batch_judges
        SELECT b.batch, NEW.run_id FROM batches AS b JOIN tasks AS t ON t.task = b.task
        WHERE t.task_id = (SELECT n.task_id FROM tasks AS n WHERE n.task = NEW.task)
        AND b.batch NOT IN (SELECT batch FROM batch_judges);
    END
