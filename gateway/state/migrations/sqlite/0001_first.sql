-- Keys of agents. A row is never deleted: a revoked key stays known, and a gateway that once had keys never opens again.
CREATE TABLE keys (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    agent       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    access      TEXT,
    limits      TEXT,
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    expires_ms  INTEGER,
    revoked_ms  INTEGER
) STRICT;

-- Keys of those who use the admin API.
CREATE TABLE admins (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'operator')),
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    revoked_ms  INTEGER
) STRICT;

-- A name's history outlives its deletion: the row stays, `live` is null.
CREATE TABLE contracts (
    name        TEXT PRIMARY KEY,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api')),
    live        TEXT,
    revision    INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE versions (
    contract     TEXT NOT NULL REFERENCES contracts (name),
    version      TEXT NOT NULL,
    artifact     TEXT NOT NULL,
    source       TEXT NOT NULL,
    class        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    published_ms INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (contract, version)
) STRICT, WITHOUT ROWID;

-- Changes that wait for someone, and what became of them. `artifact` is null where the contract is to be retired.
CREATE TABLE drafts (
    id          TEXT PRIMARY KEY,
    contract    TEXT NOT NULL,
    base        TEXT,
    version     TEXT,
    artifact    TEXT,
    source      TEXT NOT NULL,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api')),
    class       TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    report      TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'published', 'discarded', 'superseded')),
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    decided_ms  INTEGER,
    decided_by  TEXT
) STRICT;
CREATE INDEX drafts_pending ON drafts (contract) WHERE status = 'pending';

-- Answers to admin requests that named an idempotency key: a retry gets the same one.
CREATE TABLE replies (
    admin       TEXT NOT NULL,
    key         TEXT NOT NULL,
    request     TEXT NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    PRIMARY KEY (admin, key)
) STRICT, WITHOUT ROWID;

-- Moves with every change that another process must take over.
CREATE TABLE generation (n INTEGER NOT NULL) STRICT;
INSERT INTO generation VALUES (0);
CREATE TRIGGER keys_added AFTER INSERT ON keys BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER keys_changed AFTER UPDATE ON keys BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER admins_added AFTER INSERT ON admins BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER admins_changed AFTER UPDATE ON admins BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER contracts_changed AFTER UPDATE ON contracts BEGIN UPDATE generation SET n = n + 1; END;
