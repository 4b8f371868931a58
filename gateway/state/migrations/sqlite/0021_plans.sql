-- Writes that wait for a person, and what became of them. `sealed` has what would change, until the plan has ended.
CREATE TABLE plans (
    id          TEXT PRIMARY KEY,
    caller      TEXT NOT NULL,
    agent       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    subject     TEXT,
    contract    TEXT NOT NULL,
    tool        TEXT NOT NULL,
    change      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sealed      TEXT,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'applied', 'stale')),
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    decided_ms  INTEGER,
    decided_by  TEXT,
    reason      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX plans_by_caller ON plans (caller, change, created_ms);
CREATE INDEX plans_by_end ON plans (expires_ms);

-- A further role, of those who decide about plans and do nothing else. SQLite changes no CHECK in place, so the table is made anew,
-- with the sessions that refer to it.
CREATE TABLE admins_new (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('approver', 'auditor', 'viewer', 'editor', 'operator')),
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    revoked_ms  INTEGER
) STRICT;
INSERT INTO admins_new SELECT id, secret_hash, name, role, created_ms, created_by, revoked_ms FROM admins;

CREATE TABLE sessions_new (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    admin       TEXT NOT NULL REFERENCES admins_new (id),
    kind        TEXT NOT NULL CHECK (kind IN ('session', 'link')),
    created_ms  INTEGER NOT NULL,
    expires_ms  INTEGER NOT NULL,
    used_ms     INTEGER NOT NULL
) STRICT;
INSERT INTO sessions_new SELECT id, secret_hash, admin, kind, created_ms, expires_ms, used_ms FROM sessions;

DROP TABLE sessions;
DROP TABLE admins;
ALTER TABLE admins_new RENAME TO admins;
ALTER TABLE sessions_new RENAME TO sessions;
CREATE TRIGGER admins_added AFTER INSERT ON admins BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER admins_changed AFTER UPDATE ON admins BEGIN UPDATE generation SET n = n + 1; END;
CREATE INDEX sessions_by_admin ON sessions (admin, kind, created_ms);
CREATE TRIGGER sessions_added AFTER INSERT ON sessions BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER sessions_removed AFTER DELETE ON sessions BEGIN UPDATE generation SET n = n + 1; END;
