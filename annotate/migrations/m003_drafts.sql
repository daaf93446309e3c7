-- What somebody typed and has not stored: a note, a reason, an answer in words, evidence that was begun. It is no label and
-- no number reads it; it is there again after Esc, a hang-up or a restart.
CREATE TABLE drafts (
    draft_id INTEGER PRIMARY KEY,
    batch TEXT NOT NULL REFERENCES batches(batch),
    annotator_id TEXT NOT NULL REFERENCES annotators(annotator_id),
    position INTEGER NOT NULL,
    what TEXT NOT NULL,
    text TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE UNIQUE INDEX idx_drafts ON drafts(batch, annotator_id, position, what, text)
