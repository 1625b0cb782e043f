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
