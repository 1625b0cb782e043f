-- What is known by the hash of a secret, for a while: logins, links, tokens, and what was used once.
CREATE TABLE tickets (
    kind    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    created INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_time ON tickets (kind, until);
