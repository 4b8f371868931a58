-- Admins who decide about plans of writes beside what their role may.
CREATE TABLE approvers (
    admin TEXT COLLATE "C" PRIMARY KEY REFERENCES admins (id)
);
