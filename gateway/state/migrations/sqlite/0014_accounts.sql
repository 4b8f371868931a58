-- Accounts of callers at other servers. `sealed` has the tokens and what renews them; the key is among the secrets.
-- `version` moves when the tokens do, and `renewing_until_ms` keeps two processes from renewing at once.
CREATE TABLE accounts (
    number            INTEGER PRIMARY KEY AUTOINCREMENT,
    upstream          TEXT NOT NULL,
    owner             TEXT NOT NULL,
    label             TEXT NOT NULL,
    server            TEXT NOT NULL,
    issuer            TEXT NOT NULL,
    sealed            BLOB NOT NULL,
    version           INTEGER NOT NULL,
    renewing_until_ms INTEGER NOT NULL,
    created_ms        INTEGER NOT NULL,
    renewed_ms        INTEGER NOT NULL,
    UNIQUE (upstream, owner)
) STRICT;
-- Clients that were registered at an issuer, for one address that sign-ins come back to.
CREATE TABLE oauth_clients (
    issuer   TEXT NOT NULL,
    redirect TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    PRIMARY KEY (issuer, redirect)
) STRICT;
-- Links that lead to a sign-in, and sign-ins that have begun. Of what opens one there is the hash alone.
CREATE TABLE connect_links (
    hash       BLOB PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('ticket', 'sign_in')),
    upstream   TEXT NOT NULL,
    owner      TEXT NOT NULL,
    label      TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX connect_links_by_owner ON connect_links (upstream, owner, kind, expires_ms);
