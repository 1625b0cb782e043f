-- What is known by the hash of a secret, for a while: logins, links, tokens, and what was used once.
CREATE TABLE {s}.tickets (
    kind    text   COLLATE "C" NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    until   bigint NOT NULL,
    body    text   NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX tickets_by_time ON {s}.tickets (kind, until);
