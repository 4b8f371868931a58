-- Versions that are served beside the live one. `shim` is JSON; where it is null, a version goes on with its own binding.
CREATE TABLE served (
    contract    TEXT NOT NULL REFERENCES contracts (name),
    major       INTEGER NOT NULL,
    version     TEXT NOT NULL,
    shim        TEXT,
    sunset_ms   INTEGER,
    kept_ms     INTEGER NOT NULL,
    kept_by     TEXT NOT NULL,
    PRIMARY KEY (contract, major)
) STRICT;

-- The major version of a contract that an agent goes on with, whatever is live.
CREATE TABLE pins (
    agent       TEXT NOT NULL,
    contract    TEXT NOT NULL,
    major       INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    PRIMARY KEY (agent, contract)
) STRICT;
CREATE TRIGGER pins_added AFTER INSERT ON pins BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER pins_changed AFTER UPDATE ON pins BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER pins_removed AFTER DELETE ON pins BEGIN UPDATE generation SET n = n + 1; END;
