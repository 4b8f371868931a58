-- Versions that are served beside the live one. `shim` is JSON; where it is null, a version goes on with its own binding.
CREATE TABLE served (
    contract    TEXT COLLATE "C" NOT NULL REFERENCES contracts (name),
    major       BIGINT NOT NULL,
    version     TEXT COLLATE "C" NOT NULL,
    shim        TEXT,
    sunset_ms   BIGINT,
    kept_ms     BIGINT NOT NULL,
    kept_by     TEXT NOT NULL,
    PRIMARY KEY (contract, major)
);

-- The major version of a contract that an agent goes on with, whatever is live.
CREATE TABLE pins (
    agent       TEXT COLLATE "C" NOT NULL,
    contract    TEXT COLLATE "C" NOT NULL,
    major       BIGINT NOT NULL,
    created_ms  BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    PRIMARY KEY (agent, contract)
);
CREATE TRIGGER pins_changed AFTER INSERT OR UPDATE OR DELETE ON pins FOR EACH ROW EXECUTE FUNCTION weir_changed();
