-- A page of units with their labels (`annotate view --reveal`) shows people something, too. A CHECK cannot be changed in
-- place, so the table is made anew with the same rows.
CREATE TABLE new_exposures (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    person TEXT NOT NULL,
    unit_id TEXT NOT NULL REFERENCES units(unit_id),
    what TEXT NOT NULL CHECK (what IN ('text', 'gold', 'judge', 'labels')),
    field TEXT NOT NULL DEFAULT '',
    batch TEXT NOT NULL DEFAULT '',
    how TEXT NOT NULL CHECK (how IN ('sitting', 'pack', 'push', 'pull', 'import', 'view')),
    at TEXT NOT NULL
);

INSERT INTO new_exposures SELECT seq, person, unit_id, what, field, batch, how, at FROM exposures;

DROP TABLE exposures;

ALTER TABLE new_exposures RENAME TO exposures;

CREATE UNIQUE INDEX idx_exposures ON exposures(person, unit_id, what, field, batch, how);

CREATE TRIGGER exposures_keep BEFORE UPDATE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END;

CREATE TRIGGER exposures_stay BEFORE DELETE ON exposures BEGIN SELECT RAISE(ABORT, 'exposures are append-only'); END
