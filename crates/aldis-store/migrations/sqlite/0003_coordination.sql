-- Who drives a run is a column. Built anew, so that the widest column stays last.
CREATE TABLE new_runs (
    number       INTEGER PRIMARY KEY,           -- order of creation
    id           TEXT    NOT NULL UNIQUE,
    project      TEXT    NOT NULL,              -- empty when there is none
    session      TEXT,
    machine      TEXT    NOT NULL,
    driver       TEXT    NOT NULL,              -- hook, process, server or worker
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
INSERT INTO new_runs
    SELECT number, id, iif(project = 'serve', '', project), session, machine,
        iif(project = 'serve', 'server', iif(machine = 'phases', 'hook', 'process')),
        active, revision, last_event, created, updated, fence, lease_holder, lease_until, title, state
    FROM runs;
DROP TABLE runs;
ALTER TABLE new_runs RENAME TO runs;
CREATE INDEX runs_by_project ON runs (project);
CREATE INDEX runs_by_session ON runs (session) WHERE session IS NOT NULL;
-- Few runs are active, and those are looked for most often.
CREATE INDEX runs_active ON runs (project) WHERE active = 1;
CREATE INDEX runs_ended ON runs (updated) WHERE active = 0;

-- A request that comes again gets the answer of the step that took it. Empty in older rows.
ALTER TABLE events ADD COLUMN revision INTEGER;
ALTER TABLE events ADD COLUMN digest TEXT;
CREATE INDEX decisions_by_revision ON decisions (run, revision);

-- Effects are claimed by workers. A lane is a queue; `head` marks the effects with no earlier pending
-- one of their lane in front of them.
ALTER TABLE outbox ADD COLUMN lane TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN requires TEXT NOT NULL DEFAULT '';  -- labels, each with a line feed
ALTER TABLE outbox ADD COLUMN head INTEGER NOT NULL DEFAULT 1;
ALTER TABLE outbox ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;   -- fencing number of the last claim
ALTER TABLE outbox ADD COLUMN worker TEXT;
ALTER TABLE outbox ADD COLUMN claimed_until INTEGER;
-- What one run sends to one sink kept its order before there were lanes.
UPDATE outbox SET lane = run || '/' || ifnull(json_extract(body, '$.sink'), '')
    WHERE state = 0 AND kind = 'sink' AND json_valid(body);
CREATE INDEX outbox_by_lane ON outbox (lane, seq) WHERE state = 0 AND lane <> '';
UPDATE outbox SET head = 0 WHERE state = 0 AND lane <> '' AND EXISTS (
    SELECT 1 FROM outbox AS earlier
    WHERE earlier.state = 0 AND earlier.lane <> '' AND earlier.lane = outbox.lane
        AND earlier.seq < outbox.seq
);
-- Everything that choosing and counting needs, so that the effects themselves are not read.
CREATE INDEX outbox_pending ON outbox (head, kind, seq, lane, due, claimed_until, requires)
    WHERE state = 0;

-- Runs that were deleted and whose history is still being deleted.
CREATE TABLE doomed (
    run TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Written to find out whether anything can be written.
CREATE TABLE probe (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    count  INTEGER NOT NULL
) STRICT;

-- Numbers about the whole store.
CREATE TABLE marks (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The last decision that was pruned: whoever reads on from before it has missed some.
INSERT INTO marks SELECT 'pruned_to', ifnull(
    (SELECT min(seq) - 1 FROM decisions),
    ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'decisions'), 0)
);
