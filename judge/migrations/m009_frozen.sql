-- INSERT OR REPLACE takes a row away without its DELETE trigger.
CREATE TRIGGER keep_splits_insert BEFORE INSERT ON splits
    WHEN EXISTS (SELECT 1 FROM splits WHERE task_id = NEW.task_id)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_insert BEFORE INSERT ON split_questions
    WHEN EXISTS (SELECT 1 FROM split_questions WHERE task_id = NEW.task_id AND question_id = NEW.question_id)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_insert BEFORE INSERT ON split_looks
    WHEN EXISTS (SELECT 1 FROM split_looks WHERE task_id = NEW.task_id AND look = NEW.look)
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;
