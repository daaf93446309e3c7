-- A study of adjudge 0.2.0 has the tables of the baseline and one more. It made them in eleven steps, whose names are
-- replaced by that of the baseline. Embeddings were a cache: no label or judgement depends on them.
DROP TABLE embeddings;

DELETE FROM _sqlite_migrations WHERE migration_set = 'judge' AND name <> 'm001_study';

UPDATE _sqlite_migrations SET name = 'm001_baseline' WHERE migration_set = 'judge';
