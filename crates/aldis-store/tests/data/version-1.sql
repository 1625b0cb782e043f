-- A database as version 1 wrote it.

PRAGMA journal_mode = WAL;
BEGIN;

CREATE TABLE runs (
    number       INTEGER PRIMARY KEY,           -- order of creation
    id           TEXT    NOT NULL UNIQUE,
    project      TEXT    NOT NULL,
    session      TEXT,
    machine      TEXT    NOT NULL,
    active       INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    last_event   INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    fence        INTEGER NOT NULL DEFAULT 0,
    lease_holder TEXT,
    lease_until  INTEGER,
    title        TEXT    NOT NULL,
    state        TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_by_project ON runs (project);
CREATE INDEX runs_by_session ON runs (session) WHERE session IS NOT NULL;

CREATE TABLE events (
    run    TEXT    NOT NULL,
    seq    INTEGER NOT NULL,                    -- 1, 2, 3 in each run
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    source TEXT,                                -- makes a second delivery recognisable
    body   TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_source ON events (run, source) WHERE source IS NOT NULL;

CREATE TABLE decisions (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused, so that readers can follow
    run      TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    body     TEXT    NOT NULL
) STRICT;
CREATE INDEX decisions_by_run ON decisions (run);

CREATE TABLE outbox (
    seq      INTEGER PRIMARY KEY,               -- order of enqueueing
    key      TEXT    NOT NULL UNIQUE,
    run      TEXT    NOT NULL,
    state    INTEGER NOT NULL DEFAULT 0,        -- 0 pending, 1 done, 2 given up
    due      INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    kind     TEXT    NOT NULL,
    error    TEXT,
    body     TEXT    NOT NULL
) STRICT;
-- Few are pending, so what is looked for stands first; deleting a run names all three states.
CREATE INDEX outbox_by_state ON outbox (state, run);

CREATE TABLE timers (
    run TEXT    NOT NULL,
    key TEXT    NOT NULL,
    due INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due);

INSERT INTO runs VALUES (1, 'old', 'project', 'session', 'run', 1, 2, 2, 10, 20, 1, 'daemon', 99, 'An old run', '{"iteration":2}');
INSERT INTO events VALUES ('old', 1, 10, 'started', NULL, '{}'), ('old', 2, 20, 'stop', 'stop-1', '{}');
INSERT INTO decisions (run, revision, at, body) VALUES ('old', 2, 20, '{}');
INSERT INTO outbox (key, run, due, kind, body) VALUES ('old-effect', 'old', 20, 'notify', '{}');
INSERT INTO timers VALUES ('old', 'deadline', 100);
PRAGMA user_version = 1;
COMMIT;
