-- A request names the unit it was sent for, in place of an index over all judgements: the hashes are in
-- no order, so every commit of a run had to change that many more pages.
ALTER TABLE requests ADD COLUMN run_id TEXT;

ALTER TABLE requests ADD COLUMN unit_id TEXT;

UPDATE requests SET (run_id, unit_id) = (
    SELECT j.run_id, j.unit_id FROM judgements AS j JOIN latest_judgements AS k USING (run_id, unit_id, repeat)
    WHERE j.request_sha = requests.request_sha AND j.repeat = requests.repeat
    ORDER BY k.status = 'ok' DESC, k.status = 'failed', j.reused LIMIT 1);

DROP INDEX idx_judgements_request;
