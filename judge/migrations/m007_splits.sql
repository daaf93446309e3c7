-- Which questions a task's judges are taught on, chosen on and tested on, and every look at the test. Both only grow:
-- a split that could be drawn again after a look, or a look that could be taken back, would prove nothing.
CREATE TABLE splits (
    task_id TEXT PRIMARY KEY,
    field TEXT NOT NULL,
    reference TEXT NOT NULL,
    shares TEXT NOT NULL CHECK (json_valid(shares)),
    seed INTEGER NOT NULL,
    made TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE split_questions (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    question_id TEXT NOT NULL,
    part TEXT NOT NULL CHECK (part IN ('learn', 'tune', 'test')),
    PRIMARY KEY (task_id, question_id)
) WITHOUT ROWID;

CREATE TABLE split_looks (
    task_id TEXT NOT NULL REFERENCES splits(task_id),
    look INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    runs TEXT NOT NULL CHECK (json_valid(runs)),
    reference TEXT NOT NULL,
    level REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (task_id, look)
) WITHOUT ROWID;

CREATE TRIGGER keep_splits_update BEFORE UPDATE ON splits
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_splits_delete BEFORE DELETE ON splits
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_update BEFORE UPDATE ON split_questions
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_questions_delete BEFORE DELETE ON split_questions
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_update BEFORE UPDATE ON split_looks
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;

CREATE TRIGGER keep_split_looks_delete BEFORE DELETE ON split_looks
    BEGIN SELECT raise(ABORT, 'a split and its looks are never changed'); END;
