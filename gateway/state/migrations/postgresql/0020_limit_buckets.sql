-- The buckets of rates that nodes share. What is lost with a crash is full buckets, so that no log is written. A row is about
-- as many bytes as it was: an update stays on its page.
CREATE UNLOGGED TABLE limit_buckets (
    id         BYTEA PRIMARY KEY,
    level      DOUBLE PRECISION NOT NULL,
    at         DOUBLE PRECISION NOT NULL,
    per_second DOUBLE PRECISION NOT NULL,
    burst      DOUBLE PRECISION NOT NULL,
    granted    DOUBLE PRECISION NOT NULL
) WITH (fillfactor = 50);
