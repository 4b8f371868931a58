-- The last record of each chain of the audit trail, as its process said last.
CREATE TABLE audit_heads (
    chain      TEXT PRIMARY KEY,
    node       TEXT NOT NULL,
    segment    INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    written_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
