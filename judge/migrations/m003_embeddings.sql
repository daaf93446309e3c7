CREATE TABLE embeddings (
    embedder TEXT NOT NULL,
    text_sha TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, text_sha)
);
