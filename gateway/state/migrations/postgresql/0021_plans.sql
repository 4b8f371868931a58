-- Writes that wait for a person, and what became of them. `sealed` has what would change, until the plan has ended.
CREATE TABLE plans (
    id          TEXT COLLATE "C" PRIMARY KEY,
    caller      TEXT COLLATE "C" NOT NULL,
    agent       TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    subject     TEXT,
    contract    TEXT NOT NULL,
    tool        TEXT NOT NULL,
    change      TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    sealed      TEXT,
    status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'applied', 'stale')),
    created_ms  BIGINT NOT NULL,
    expires_ms  BIGINT NOT NULL,
    decided_ms  BIGINT,
    decided_by  TEXT,
    reason      TEXT
);
CREATE INDEX plans_by_caller ON plans (caller, change, created_ms);
CREATE INDEX plans_by_end ON plans (expires_ms);

-- A further role, of those who decide about plans and do nothing else.
ALTER TABLE admins DROP CONSTRAINT admins_role_check;
ALTER TABLE admins ADD CONSTRAINT admins_role_check CHECK (role IN ('approver', 'auditor', 'viewer', 'editor', 'operator'));
