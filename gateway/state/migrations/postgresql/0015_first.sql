-- The tables as they are in SQLite after the migration of the same number. Texts that are compared or sorted are so by their
-- bytes, as SQLite does.

-- Moves with every change that another process must take over. A change locks this row first, so that numbers are in the order
-- of the commits.
CREATE TABLE generation (n BIGINT NOT NULL);
INSERT INTO generation VALUES (0);
CREATE TABLE key_changes (n BIGINT NOT NULL);
INSERT INTO key_changes VALUES (0);

CREATE FUNCTION weir_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE generation SET n = n + 1;
    RETURN NULL;
END $$;
-- A nudge: whoever listens reads the number. It is sent once for a transaction, when that is committed.
CREATE FUNCTION weir_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('weir_changes', '');
    RETURN NULL;
END $$;
CREATE TRIGGER generation_changed AFTER UPDATE ON generation FOR EACH STATEMENT EXECUTE FUNCTION weir_notify();

-- Keys of agents. A row is never deleted: a revoked key stays known, and a gateway that once had keys never opens again.
CREATE TABLE keys (
    id          TEXT COLLATE "C" PRIMARY KEY,
    secret_hash BYTEA NOT NULL,
    agent       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    access      TEXT,
    limits      TEXT,
    created_ms  BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    expires_ms  BIGINT,
    revoked_ms  BIGINT,
    change      BIGINT NOT NULL DEFAULT 0,
    view        TEXT
);
CREATE INDEX keys_by_change ON keys (change);
CREATE FUNCTION weir_number_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE key_changes SET n = n + 1 RETURNING n INTO NEW.change;
    RETURN NEW;
END $$;
CREATE TRIGGER keys_numbered_added BEFORE INSERT ON keys FOR EACH ROW EXECUTE FUNCTION weir_number_key();
CREATE TRIGGER keys_numbered BEFORE UPDATE OF secret_hash, agent, tenant, access, limits, expires_ms, revoked_ms ON keys
    FOR EACH ROW EXECUTE FUNCTION weir_number_key();
CREATE TRIGGER keys_added AFTER INSERT ON keys FOR EACH ROW EXECUTE FUNCTION weir_changed();
CREATE TRIGGER keys_changed AFTER UPDATE OF secret_hash, agent, tenant, access, limits, expires_ms, revoked_ms ON keys
    FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- Keys of those who use the admin API.
CREATE TABLE admins (
    id          TEXT COLLATE "C" PRIMARY KEY,
    secret_hash BYTEA NOT NULL,
    name        TEXT NOT NULL,
    role        TEXT NOT NULL CHECK (role IN ('auditor', 'viewer', 'editor', 'operator')),
    created_ms  BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    revoked_ms  BIGINT
);
CREATE TRIGGER admins_changed AFTER INSERT OR UPDATE ON admins FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- Sign-ins of admins, and links that sign in once. Of a secret there is the hash alone.
CREATE TABLE sessions (
    id          TEXT COLLATE "C" PRIMARY KEY,
    secret_hash BYTEA NOT NULL,
    admin       TEXT COLLATE "C" NOT NULL REFERENCES admins (id),
    kind        TEXT NOT NULL CHECK (kind IN ('session', 'link')),
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,
    used_ms     BIGINT NOT NULL
);
CREATE INDEX sessions_by_admin ON sessions (admin, kind, created_ms);
CREATE TRIGGER sessions_changed AFTER INSERT OR DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- A name's history outlives its deletion: the row stays, `live` is null.
CREATE TABLE contracts (
    name        TEXT COLLATE "C" PRIMARY KEY,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api', 'code', 'upstream')),
    owner       TEXT,
    live        TEXT COLLATE "C",
    revision    BIGINT NOT NULL DEFAULT 1,
    last        TEXT,
    rolled_back TEXT
);
CREATE TRIGGER contracts_changed AFTER UPDATE ON contracts FOR EACH ROW EXECUTE FUNCTION weir_changed();

CREATE TABLE versions (
    contract     TEXT COLLATE "C" NOT NULL REFERENCES contracts (name),
    version      TEXT COLLATE "C" NOT NULL,
    artifact     TEXT NOT NULL,
    source       TEXT NOT NULL,
    class        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    published_ms BIGINT NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (contract, version)
);

-- Changes that wait for someone, and what became of them. `artifact` is null where the contract is to be retired.
CREATE TABLE drafts (
    id          TEXT COLLATE "C" PRIMARY KEY,
    contract    TEXT COLLATE "C" NOT NULL,
    base        TEXT,
    version     TEXT,
    artifact    TEXT,
    source      TEXT NOT NULL,
    origin      TEXT NOT NULL CHECK (origin IN ('file', 'api', 'code', 'upstream')),
    owner       TEXT,
    class       TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    report      TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'published', 'discarded', 'superseded')),
    created_ms  BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    decided_ms  BIGINT,
    decided_by  TEXT
);
CREATE INDEX drafts_pending ON drafts (contract) WHERE status = 'pending';
CREATE INDEX drafts_by_time ON drafts (created_ms, id);
CREATE INDEX drafts_of_contract ON drafts (contract, created_ms, id);
CREATE TRIGGER drafts_added AFTER INSERT ON drafts FOR EACH ROW EXECUTE FUNCTION weir_changed();
CREATE TRIGGER drafts_decided AFTER UPDATE OF status ON drafts FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- Answers to admin requests that named an idempotency key: a retry gets the same one.
CREATE TABLE replies (
    admin       TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    request     TEXT NOT NULL,
    status      BIGINT NOT NULL,
    body        TEXT NOT NULL,
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (admin, key)
);

-- What calls looked like, without what agents wrote: for the impact of a change. Counted by day, since a day is what is
-- forgotten at once.
CREATE TABLE profiles (
    day         BIGINT NOT NULL, -- since 1970
    contract    TEXT COLLATE "C" NOT NULL,
    tool        TEXT COLLATE "C" NOT NULL,
    agent       TEXT COLLATE "C" NOT NULL,
    profile     TEXT COLLATE "C" NOT NULL,
    calls       BIGINT NOT NULL,
    PRIMARY KEY (day, contract, tool, agent, profile)
);

-- Shapes of collections as they were described last.
CREATE TABLE shapes (
    contract    TEXT COLLATE "C" NOT NULL,
    collection  TEXT COLLATE "C" NOT NULL,
    adapter     TEXT NOT NULL,
    settings    TEXT NOT NULL,
    shape       TEXT NOT NULL,
    PRIMARY KEY (contract, collection)
);
CREATE TRIGGER shapes_changed AFTER INSERT OR UPDATE ON shapes FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- Secrets of the gateway's own. Each is made once.
CREATE TABLE secrets (
    purpose     TEXT COLLATE "C" PRIMARY KEY,
    bytes       BYTEA NOT NULL,
    created_ms  BIGINT NOT NULL
);
CREATE TRIGGER secrets_added AFTER INSERT ON secrets FOR EACH ROW EXECUTE FUNCTION weir_changed();

-- Builds of plugins that may write, and that may run without further approval. Each change has the number of the feed, so
-- that a process sees whether anything was accepted since it looked.
CREATE TABLE accepted_builds (
    plugin      TEXT COLLATE "C" NOT NULL,
    digest      TEXT COLLATE "C" NOT NULL,
    accepted_ms BIGINT NOT NULL,
    accepted_by TEXT,
    change      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (plugin, digest)
);
CREATE INDEX accepted_builds_by_change ON accepted_builds (change);
CREATE FUNCTION weir_number_build() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE generation SET n = n + 1 RETURNING n INTO NEW.change;
    RETURN NEW;
END $$;
CREATE TRIGGER accepted_builds_added BEFORE INSERT ON accepted_builds FOR EACH ROW EXECUTE FUNCTION weir_number_build();
CREATE TRIGGER accepted_builds_changed BEFORE UPDATE OF accepted_ms, accepted_by ON accepted_builds
    FOR EACH ROW EXECUTE FUNCTION weir_number_build();

-- Builds that published contracts were promised, so that they can run again.
CREATE TABLE kept_builds (
    plugin      TEXT COLLATE "C" NOT NULL,
    definitions TEXT COLLATE "C" NOT NULL,
    digest      TEXT COLLATE "C" NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('wasm', 'so')),
    size        BIGINT NOT NULL,
    used_ms     BIGINT NOT NULL,
    PRIMARY KEY (plugin, definitions, digest)
);
CREATE INDEX kept_builds_by_digest ON kept_builds (digest);
CREATE TRIGGER kept_builds_added AFTER INSERT ON kept_builds FOR EACH ROW EXECUTE FUNCTION weir_changed();
-- Their content, of which each node has copies in files.
CREATE TABLE build_contents (
    digest      TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    bytes       BYTEA NOT NULL,
    signature   TEXT,
    PRIMARY KEY (digest, kind)
);

-- How often each key was used, by the hour. Of an hour that is over a day ago only the newest of a key is kept: its last use.
CREATE TABLE key_uses (
    key     TEXT COLLATE "C" NOT NULL,
    hour    BIGINT NOT NULL,
    calls   BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    PRIMARY KEY (key, hour)
);

-- The calls of agents that have a quota, by the day (UTC, days since 1970).
CREATE TABLE agent_calls (
    tenant TEXT COLLATE "C" NOT NULL,
    agent  TEXT COLLATE "C" NOT NULL,
    day    BIGINT NOT NULL,
    calls  BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, day)
);

-- Accounts of callers at other servers. `sealed` has the tokens and what renews them; the key is among the secrets.
-- `version` moves when the tokens do, and `renewing_until_ms` keeps two processes from renewing at once.
CREATE TABLE accounts (
    number            BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    upstream          TEXT COLLATE "C" NOT NULL,
    owner             TEXT COLLATE "C" NOT NULL,
    label             TEXT COLLATE "C" NOT NULL,
    server            TEXT NOT NULL,
    issuer            TEXT NOT NULL,
    sealed            BYTEA NOT NULL,
    version           BIGINT NOT NULL,
    renewing_until_ms BIGINT NOT NULL,
    created_ms        BIGINT NOT NULL,
    renewed_ms        BIGINT NOT NULL,
    UNIQUE (upstream, owner)
);
-- Clients that were registered at an issuer, for one address that sign-ins come back to.
CREATE TABLE oauth_clients (
    issuer   TEXT COLLATE "C" NOT NULL,
    redirect TEXT COLLATE "C" NOT NULL,
    sealed   BYTEA NOT NULL,
    PRIMARY KEY (issuer, redirect)
);
-- Links that lead to a sign-in, and sign-ins that have begun. Of what opens one there is the hash alone.
CREATE TABLE connect_links (
    hash       BYTEA PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('ticket', 'sign_in')),
    upstream   TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL,
    label      TEXT NOT NULL,
    sealed     BYTEA NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX connect_links_by_owner ON connect_links (upstream, owner, kind, expires_ms);

-- The nodes that run, and those that ran lately. Times are the database's, in milliseconds since 1970.
CREATE TABLE nodes (
    id            TEXT COLLATE "C" PRIMARY KEY,
    name          TEXT NOT NULL,
    version       TEXT NOT NULL,
    formats       TEXT NOT NULL,
    configuration TEXT NOT NULL,
    started_ms    BIGINT NOT NULL,
    lease_ms      BIGINT NOT NULL,
    stale_ms      BIGINT NOT NULL,
    seen          BIGINT NOT NULL
);
