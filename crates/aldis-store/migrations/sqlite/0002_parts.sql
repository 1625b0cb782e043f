-- Named pieces of a run's state, for states too large to be written whole with each step.

CREATE TABLE parts (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
