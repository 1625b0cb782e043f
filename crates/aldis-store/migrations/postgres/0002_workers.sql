-- Workers that offer to run agents, as they announced themselves last. {s} stands for the schema.
CREATE TABLE {s}.workers (
    name  text   COLLATE "C" PRIMARY KEY,
    seen  bigint NOT NULL,
    until bigint NOT NULL,              -- taken to be gone after that
    body  text   NOT NULL
) WITH (fillfactor = 50);
