-- A database as version 2 wrote it: 0.1.0.

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

CREATE TABLE parts (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

INSERT INTO runs VALUES
    (1, 'gone-before', '/home/me/shop', NULL, 'run', 0, 1, 1, 5, 5, 0, NULL, NULL, 'A run that ended', '{}'),
    (2, 'hooked', '/home/me/shop', 's-1', 'phases', 1, 2, 2, 10, 20, 0, NULL, NULL, 'Under a hook', '{"iteration":2}'),
    (3, 'general', 'serve', NULL, 'turns', 1, 1, 1, 30, 30, 0, NULL, NULL, 'A channel', '{}'),
    (4, 'served-phases', 'serve', 's-2', 'phases', 1, 1, 1, 31, 31, 0, NULL, NULL, 'Phases of the server', '{}'),
    (7, 'plan', '/home/me/shop', NULL, 'delivery', 1, 1, 1, 40, 40, 3, 'pid 17', 99, 'A delivery', '{}');
INSERT INTO events VALUES
    ('gone-before', 1, 5, 'start', NULL, '{}'),
    ('hooked', 1, 10, 'start', NULL, '{}'), ('hooked', 2, 20, 'stop', 'stop-1', '{}'),
    ('general', 1, 30, 'open', 'api:k', '{}'), ('served-phases', 1, 31, 'start', NULL, '{}'),
    ('plan', 1, 40, 'start', NULL, '{}');
INSERT INTO decisions VALUES (3, 'hooked', 2, 20, '{"rule":"a"}'), (5, 'general', 1, 30, '{"rule":"b"}');
UPDATE sqlite_sequence SET seq = 6 WHERE name = 'decisions';
INSERT INTO outbox VALUES
    (1, 'gone-before/1/0', 'gone-before', 2, 5, 20, 'run', 'refused', '{}'),
    (2, 'hooked/view/2', 'hooked', 0, 20, 0, 'view', NULL, '{}'),
    (3, 'general/1/0/all', 'general', 0, 30, 1, 'sink', 'timed out', '{"sink":"all"}'),
    (4, 'general/1/1/all', 'general', 1, 30, 0, 'sink', NULL, '{"sink":"all"}');
INSERT INTO timers VALUES ('general', 'wake', 100);
INSERT INTO parts VALUES ('plan', 'task/1', '{"task":1}');
PRAGMA user_version = 2;
COMMIT;
