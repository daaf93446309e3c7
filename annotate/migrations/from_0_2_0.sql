-- A study of adjudge 0.2.0 has the tables of the baseline. It made them in seven steps, whose names are replaced by that
-- of the baseline.
DELETE FROM _sqlite_migrations WHERE migration_set = 'annotate' AND name <> 'm001_batches';

UPDATE _sqlite_migrations SET name = 'm001_baseline' WHERE migration_set = 'annotate';
