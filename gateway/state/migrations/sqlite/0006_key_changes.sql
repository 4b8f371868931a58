-- Each change of a key has a number of its own: a process takes over the keys after the last number it has seen, and none
-- of them twice.
ALTER TABLE keys ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER keys_added;
DROP TRIGGER keys_changed;
UPDATE keys SET change = rowid;
CREATE INDEX keys_by_change ON keys (change);
CREATE TABLE key_changes (n INTEGER NOT NULL) STRICT;
INSERT INTO key_changes SELECT coalesce(max(rowid), 0) FROM keys;
CREATE TRIGGER keys_added AFTER INSERT ON keys BEGIN
    UPDATE generation SET n = n + 1;
    UPDATE key_changes SET n = n + 1;
    UPDATE keys SET change = (SELECT n FROM key_changes) WHERE id = NEW.id;
END;
CREATE TRIGGER keys_changed
AFTER UPDATE OF secret_hash, agent, tenant, access, limits, expires_ms, revoked_ms ON keys BEGIN
    UPDATE generation SET n = n + 1;
    UPDATE key_changes SET n = n + 1;
    UPDATE keys SET change = (SELECT n FROM key_changes) WHERE id = NEW.id;
END;
