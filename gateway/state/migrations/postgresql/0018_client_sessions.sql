-- What clients asked of their sessions beyond the handshake, which the id says, and which sessions they ended.
CREATE TABLE client_sessions (
    id         TEXT COLLATE "C" PRIMARY KEY,
    note       TEXT NOT NULL,
    expires_ms BIGINT NOT NULL,
    change     BIGINT NOT NULL
);
CREATE INDEX client_sessions_by_change ON client_sessions (change);
CREATE INDEX client_sessions_by_end ON client_sessions (expires_ms);
