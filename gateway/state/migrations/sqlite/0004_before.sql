-- What a contract was before: the version that was live when it was retired, and the one that someone went back from.
ALTER TABLE contracts ADD COLUMN last TEXT;
ALTER TABLE contracts ADD COLUMN rolled_back TEXT;
