-- Workers that offer to run agents, as they announced themselves last.
CREATE TABLE workers (
    name  TEXT    NOT NULL PRIMARY KEY,
    seen  INTEGER NOT NULL,
    until INTEGER NOT NULL,             -- taken to be gone after that
    body  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
