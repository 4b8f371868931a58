-- Admins who decide about plans of writes beside what their role may.
CREATE TABLE approvers (
    admin TEXT PRIMARY KEY REFERENCES admins (id)
) STRICT, WITHOUT ROWID;
