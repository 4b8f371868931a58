-- What is noted of clients' sessions has numbers of its own: contracts and keys do not move with them.
CREATE TABLE session_changes (n BIGINT NOT NULL);
INSERT INTO session_changes SELECT n FROM generation;

-- Messages between nodes, sealed, for a few seconds. Without a recipient they are for all. Each batch locks the row with the
-- number first, so that numbers are in the order of the commits.
CREATE TABLE message_numbers (n BIGINT NOT NULL);
INSERT INTO message_numbers VALUES (0);
CREATE TABLE messages (
    number    BIGINT PRIMARY KEY,
    sender    TEXT COLLATE "C" NOT NULL,
    recipient TEXT COLLATE "C",
    content   BYTEA NOT NULL,
    sent_ms   BIGINT NOT NULL
);
CREATE INDEX messages_by_recipient ON messages (recipient, number);
CREATE INDEX messages_by_time ON messages (sent_ms);

-- A nudge on a channel of its own, for both.
CREATE FUNCTION weir_notify_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('weir_messages', '');
    RETURN NULL;
END $$;
CREATE TRIGGER session_changes_moved AFTER UPDATE ON session_changes FOR EACH STATEMENT EXECUTE FUNCTION weir_notify_messages();
CREATE TRIGGER messages_moved AFTER UPDATE ON message_numbers FOR EACH STATEMENT EXECUTE FUNCTION weir_notify_messages();

-- Builds of plugins that were uploaded to one node, for the plugins folders of the others: the newest of each file, with the number
-- of the change. Without a digest the file is taken away. Their content is in `build_contents`.
CREATE TABLE uploaded_builds (
    file        TEXT COLLATE "C" PRIMARY KEY,
    digest      TEXT COLLATE "C",
    uploaded_by TEXT NOT NULL,
    change      BIGINT NOT NULL
);
-- The last of these changes that a node has taken over.
ALTER TABLE nodes ADD COLUMN builds BIGINT NOT NULL DEFAULT 0;
