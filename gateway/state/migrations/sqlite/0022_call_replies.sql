-- Writes that came with an idempotency key, and their results, sealed. One that runs beyond its lease is unknown.
CREATE TABLE call_replies (
    caller     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('running', 'done', 'unknown')),
    sealed     TEXT,
    lease_ms   INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (caller, tool, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_replies_by_age ON call_replies (created_ms);
