-- Rights that ended before their time: keys of agents and admins, sessions and links of the console, approvals of writes, accounts at
-- other servers and links that lead to a sign-in there. Each node knows them, and ends them again in a database that takes over without
-- having received the end. Their numbers are in the order of the commits, and apart from those of other changes.
CREATE TABLE ending_changes (n BIGINT NOT NULL);
CREATE TRIGGER ending_changes_moved AFTER UPDATE ON ending_changes FOR EACH STATEMENT EXECUTE FUNCTION weir_notify();
CREATE TABLE endings (
    kind     TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    status   TEXT NOT NULL, -- what became of a plan
    at_ms    BIGINT NOT NULL,
    until_ms BIGINT NOT NULL, -- when the right would have ended by itself, or else a month later
    change   BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX endings_by_change ON endings (change);
CREATE INDEX endings_by_end ON endings (until_ms);

CREATE FUNCTION weir_note_ending(of_kind TEXT, of_id TEXT, new_status TEXT, ends_ms BIGINT) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now_ms BIGINT := CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT);
    last_ms BIGINT := least(ends_ms, now_ms + 30 * 86400000::BIGINT);
    number BIGINT;
BEGIN
    IF last_ms <= now_ms THEN
        RETURN;
    END IF;
    UPDATE ending_changes SET n = n + 1 RETURNING n INTO number;
    DELETE FROM endings WHERE until_ms <= now_ms;
    INSERT INTO endings (kind, id, status, at_ms, until_ms, change) VALUES (of_kind, of_id, new_status, now_ms, last_ms, number)
        ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status, at_ms = excluded.at_ms, until_ms = excluded.until_ms,
        change = excluded.change;
END $$;

CREATE FUNCTION weir_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE TG_TABLE_NAME
        WHEN 'keys' THEN
            PERFORM weir_note_ending('key', NEW.id, '', NEW.expires_ms);
        WHEN 'admins' THEN
            PERFORM weir_note_ending('admin', NEW.id, '', NULL);
        WHEN 'sessions' THEN
            PERFORM weir_note_ending('session', OLD.id, '', OLD.expires_ms);
        WHEN 'plans' THEN
            PERFORM weir_note_ending('plan', NEW.id, NEW.status, NEW.expires_ms);
        WHEN 'accounts' THEN
            -- A database that took over may give the number once more.
            PERFORM weir_note_ending('account', concat(OLD.number, ' ', OLD.created_ms), '', NULL);
        WHEN 'connect_links' THEN
            PERFORM weir_note_ending('connect_link', encode(OLD.hash, 'hex'), '', OLD.expires_ms);
    END CASE;
    RETURN NULL;
END $$;
CREATE TRIGGER keys_ended AFTER UPDATE OF revoked_ms ON keys
    FOR EACH ROW WHEN (NEW.revoked_ms IS NOT NULL) EXECUTE FUNCTION weir_ended();
CREATE TRIGGER admins_ended AFTER UPDATE OF revoked_ms ON admins
    FOR EACH ROW WHEN (NEW.revoked_ms IS NOT NULL) EXECUTE FUNCTION weir_ended();
CREATE TRIGGER sessions_ended AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION weir_ended();
-- An approval that a call took and gave back, to ask a question, is one again.
CREATE TRIGGER plans_ended AFTER UPDATE OF status ON plans
    FOR EACH ROW WHEN (NEW.status <> OLD.status AND (NEW.status NOT IN ('pending', 'approved') OR OLD.status = 'applied'))
    EXECUTE FUNCTION weir_ended();
CREATE TRIGGER accounts_ended AFTER DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION weir_ended();
CREATE TRIGGER connect_links_ended AFTER DELETE ON connect_links FOR EACH ROW EXECUTE FUNCTION weir_ended();

-- Keys that were revoked within the last month.
INSERT INTO endings (kind, id, status, at_ms, until_ms, change)
    SELECT kind, id, '', revoked_ms, least(expires_ms, revoked_ms + 30 * 86400000::BIGINT), row_number() OVER ()
    FROM (
        SELECT 'key' AS kind, id, revoked_ms, expires_ms FROM keys
        UNION ALL SELECT 'admin', id, revoked_ms, NULL FROM admins
    ) AS known
    WHERE revoked_ms > extract(epoch FROM clock_timestamp()) * 1000 - 30 * 86400000::BIGINT;
INSERT INTO ending_changes SELECT count(*) FROM endings;
