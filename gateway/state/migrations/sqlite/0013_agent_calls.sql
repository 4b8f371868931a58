-- The calls of agents that have a quota, by the day (UTC, days since 1970).
CREATE TABLE agent_calls (
    tenant TEXT NOT NULL,
    agent  TEXT NOT NULL,
    day    INTEGER NOT NULL,
    calls  INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, day)
) STRICT, WITHOUT ROWID;
