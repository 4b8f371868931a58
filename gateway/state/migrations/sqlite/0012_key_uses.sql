-- How often each key was used, by the hour. Of an hour that is over a day ago only the newest of a key is kept: its last use.
CREATE TABLE key_uses (
    key     TEXT NOT NULL,
    hour    INTEGER NOT NULL,
    calls   INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (key, hour)
) STRICT, WITHOUT ROWID;
