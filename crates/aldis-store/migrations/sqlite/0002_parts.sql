-- States too large to be written whole with every step are kept in parts.
CREATE TABLE parts (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
