-- What calls looked like, without what agents wrote: for the impact of a change. Counted by day, since a day is what is
-- forgotten at once.
CREATE TABLE profiles (
    day         INTEGER NOT NULL, -- since 1970
    contract    TEXT NOT NULL,
    tool        TEXT NOT NULL,
    agent       TEXT NOT NULL,
    profile     TEXT NOT NULL,
    calls       INTEGER NOT NULL,
    PRIMARY KEY (day, contract, tool, agent, profile)
) STRICT, WITHOUT ROWID;
