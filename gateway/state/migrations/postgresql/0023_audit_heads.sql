-- The last record of each chain of the audit trail, as its process said last.
CREATE TABLE audit_heads (
    chain      TEXT COLLATE "C" PRIMARY KEY,
    node       TEXT NOT NULL,
    segment    BIGINT NOT NULL,
    seq        BIGINT NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL,
    written_ms BIGINT NOT NULL
);
