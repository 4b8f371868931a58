-- Writes that came with an idempotency key, and their results, sealed. One that runs beyond its lease is unknown.
CREATE TABLE call_replies (
    caller     TEXT COLLATE "C" NOT NULL,
    tool       TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    request    TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('running', 'done', 'unknown')),
    sealed     TEXT,
    lease_ms   BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (caller, tool, key)
);
CREATE INDEX call_replies_by_age ON call_replies (created_ms);
