-- What is noted of clients' sessions has numbers of its own: contracts and keys do not move with them.
CREATE TABLE session_changes (n INTEGER NOT NULL) STRICT;
INSERT INTO session_changes SELECT n FROM generation;
