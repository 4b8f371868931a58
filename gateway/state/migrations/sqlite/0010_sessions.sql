-- Sign-ins of admins, and links that sign in once. Of a secret there is the hash alone.
CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    admin       TEXT NOT NULL REFERENCES admins (id),
    kind        TEXT NOT NULL CHECK (kind IN ('session', 'link')),
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    used_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_admin ON sessions (admin, kind, created_ms);
CREATE TRIGGER sessions_added AFTER INSERT ON sessions BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER sessions_removed AFTER DELETE ON sessions BEGIN UPDATE generation SET n = n + 1; END;
