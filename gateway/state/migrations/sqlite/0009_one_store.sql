-- Shapes of collections as they were described last.
CREATE TABLE shapes (
    contract    TEXT NOT NULL,
    collection  TEXT NOT NULL,
    adapter     TEXT NOT NULL,
    settings    TEXT NOT NULL,
    shape       TEXT NOT NULL,
    PRIMARY KEY (contract, collection)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER shapes_added AFTER INSERT ON shapes BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER shapes_changed AFTER UPDATE ON shapes BEGIN UPDATE generation SET n = n + 1; END;

-- Secrets of the gateway's own. Each is made once.
CREATE TABLE secrets (
    purpose     TEXT PRIMARY KEY,
    bytes       BLOB NOT NULL,
    created_ms  INTEGER NOT NULL
) STRICT;
CREATE TRIGGER secrets_added AFTER INSERT ON secrets BEGIN UPDATE generation SET n = n + 1; END;

-- Builds of plugins that may write, and that may run without further approval. Each change has the number of the feed, so
-- that a process sees whether anything was accepted since it looked.
CREATE TABLE accepted_builds (
    plugin      TEXT NOT NULL,
    digest      TEXT NOT NULL,
    accepted_ms INTEGER NOT NULL,
    accepted_by TEXT,
    change      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (plugin, digest)
) STRICT;
CREATE INDEX accepted_builds_by_change ON accepted_builds (change);
CREATE TRIGGER accepted_builds_added AFTER INSERT ON accepted_builds BEGIN
    UPDATE generation SET n = n + 1;
    UPDATE accepted_builds SET change = (SELECT n FROM generation) WHERE plugin = NEW.plugin AND digest = NEW.digest;
END;
CREATE TRIGGER accepted_builds_changed AFTER UPDATE OF accepted_ms, accepted_by ON accepted_builds BEGIN
    UPDATE generation SET n = n + 1;
    UPDATE accepted_builds SET change = (SELECT n FROM generation) WHERE plugin = NEW.plugin AND digest = NEW.digest;
END;

-- Builds that published contracts were promised, so that they can run again. Their content is in files named by the digest.
CREATE TABLE kept_builds (
    plugin      TEXT NOT NULL,
    definitions TEXT NOT NULL,
    digest      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('wasm', 'so')),
    size        INTEGER NOT NULL,
    used_ms     INTEGER NOT NULL,
    PRIMARY KEY (plugin, definitions, digest)
) STRICT;
CREATE INDEX kept_builds_by_digest ON kept_builds (digest);
CREATE TRIGGER kept_builds_added AFTER INSERT ON kept_builds BEGIN UPDATE generation SET n = n + 1; END;
