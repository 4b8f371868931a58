-- What clients asked of their sessions beyond the handshake, which the id says, and which sessions they ended.
CREATE TABLE client_sessions (
    id         TEXT PRIMARY KEY,
    note       TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    change     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX client_sessions_by_change ON client_sessions (change);
CREATE INDEX client_sessions_by_end ON client_sessions (expires_ms);
