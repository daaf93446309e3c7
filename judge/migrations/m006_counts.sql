-- How many units of a run stand how, kept as judgements come in: a run of millions is not counted anew each time it
-- goes on. What is not `ok` is few, and found without reading the rest.
CREATE TABLE run_counts (
    run_id TEXT NOT NULL REFERENCES runs(run_id),
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (run_id, repeat, status)
) WITHOUT ROWID;

INSERT INTO run_counts SELECT run_id, repeat, status, count(*) FROM latest_judgements GROUP BY 1, 2, 3;

CREATE INDEX idx_judgements_not_ok ON judgements(run_id, repeat, status, unit_id, attempt) WHERE status <> 'ok';

CREATE TRIGGER count_judgement AFTER INSERT ON judgements
    WHEN NOT EXISTS (SELECT 1 FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
        AND o.repeat = NEW.repeat AND o.attempt > NEW.attempt)
    BEGIN
        UPDATE run_counts SET units = units - 1
        WHERE run_id = NEW.run_id AND repeat = NEW.repeat AND status = (
            SELECT o.status FROM judgements AS o WHERE o.run_id = NEW.run_id AND o.unit_id = NEW.unit_id
            AND o.repeat = NEW.repeat AND o.attempt < NEW.attempt ORDER BY o.attempt DESC LIMIT 1);
        INSERT INTO run_counts VALUES (NEW.run_id, NEW.repeat, NEW.status, 1)
        ON CONFLICT DO UPDATE SET units = units + 1;
    END;
