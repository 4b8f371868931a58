-- Contracts also come from code and from other servers, and one from files has the folder that owns it: the first that
-- published it. SQLite changes no CHECK in place, so both tables are made anew, with the versions that refer to one of them.
CREATE TABLE contracts_new (
    name        TEXT PRIMARY KEY,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api', 'code', 'upstream')),
    owner       TEXT,
    live        TEXT,
    revision    INTEGER NOT NULL DEFAULT 1,
    last        TEXT,
    rolled_back TEXT
) STRICT;
INSERT INTO contracts_new (name, origin, live, revision, last, rolled_back)
    SELECT name, origin, live, revision, last, rolled_back FROM contracts;

CREATE TABLE versions_new (
    contract     TEXT NOT NULL REFERENCES contracts_new (name),
    version      TEXT NOT NULL,
    artifact     TEXT NOT NULL,
    source       TEXT NOT NULL,
    class        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    published_ms INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (contract, version)
) STRICT, WITHOUT ROWID;
INSERT INTO versions_new SELECT contract, version, artifact, source, class, fingerprint, published_ms, published_by
    FROM versions;

DROP TABLE versions;
DROP TABLE contracts;
ALTER TABLE contracts_new RENAME TO contracts;
ALTER TABLE versions_new RENAME TO versions;
CREATE TRIGGER contracts_changed AFTER UPDATE ON contracts BEGIN UPDATE generation SET n = n + 1; END;

CREATE TABLE drafts_new (
    id          TEXT PRIMARY KEY,
    contract    TEXT NOT NULL,
    base        TEXT,
    version     TEXT,
    artifact    TEXT,
    source      TEXT NOT NULL,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api', 'code', 'upstream')),
    owner       TEXT,
    class       TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    report      TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'published', 'discarded', 'superseded')),
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    decided_ms  INTEGER,
    decided_by  TEXT
) STRICT;
INSERT INTO drafts_new (id, contract, base, version, artifact, source, origin, class, fingerprint, report, status,
    created_ms, created_by, decided_ms, decided_by)
    SELECT id, contract, base, version, artifact, source, origin, class, fingerprint, report, status,
    created_ms, created_by, decided_ms, decided_by FROM drafts;
DROP TABLE drafts;
ALTER TABLE drafts_new RENAME TO drafts;
CREATE INDEX drafts_pending ON drafts (contract) WHERE status = 'pending';
CREATE TRIGGER drafts_added AFTER INSERT ON drafts BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER drafts_decided AFTER UPDATE OF status ON drafts BEGIN UPDATE generation SET n = n + 1; END;
