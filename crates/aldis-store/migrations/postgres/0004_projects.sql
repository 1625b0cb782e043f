-- Row-level security by project: a second wall behind what servers check. A role that is named in `members`
-- sees and writes runs of its projects alone, whatever statement it sends; every other role sees all.
-- The setting `aldis.project` narrows a session further, and never widens it.
CREATE TABLE {s}.members (
    role    name NOT NULL,
    project text COLLATE "C" NOT NULL,
    PRIMARY KEY (role, project)
);

-- Whether the session sees everything. Asked once for each statement: it stands in a subquery of its own.
CREATE FUNCTION {s}.sees_all() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('aldis.project', true), '') = ''
        AND NOT EXISTS (SELECT 1 FROM {s}.members WHERE role = current_user)
$$;

-- The projects whose runs the session sees, where it does not see everything.
CREATE FUNCTION {s}.own_projects() RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN coalesce(current_setting('aldis.project', true), '') = ''
            THEN ARRAY(SELECT project FROM {s}.members WHERE role = current_user)
        WHEN NOT EXISTS (SELECT 1 FROM {s}.members WHERE role = current_user)
            THEN ARRAY[current_setting('aldis.project', true)]
        ELSE ARRAY(
            SELECT project FROM {s}.members
            WHERE role = current_user AND project = current_setting('aldis.project', true)
        )
    END
$$;

ALTER TABLE {s}.runs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.runs USING (
    (SELECT {s}.sees_all()) OR project = ANY ((SELECT {s}.own_projects())::text[])
);

-- What belongs to a run is seen by whoever sees the run.
ALTER TABLE {s}.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.events USING (
    (SELECT {s}.sees_all()) OR EXISTS (SELECT 1 FROM {s}.runs WHERE id = run)
);
ALTER TABLE {s}.decisions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.decisions USING (
    (SELECT {s}.sees_all()) OR EXISTS (SELECT 1 FROM {s}.runs WHERE id = run)
);
ALTER TABLE {s}.outbox ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.outbox USING (
    (SELECT {s}.sees_all()) OR EXISTS (SELECT 1 FROM {s}.runs WHERE id = run)
);
ALTER TABLE {s}.timers ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.timers USING (
    (SELECT {s}.sees_all()) OR EXISTS (SELECT 1 FROM {s}.runs WHERE id = run)
);
ALTER TABLE {s}.parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_project ON {s}.parts USING (
    (SELECT {s}.sees_all()) OR EXISTS (SELECT 1 FROM {s}.runs WHERE id = run)
);

-- Tokens and logins are for all projects, and so is deleting.
ALTER TABLE {s}.tickets ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_all ON {s}.tickets USING ((SELECT {s}.sees_all()));
ALTER TABLE {s}.doomed ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_all ON {s}.doomed USING ((SELECT {s}.sees_all()));
-- Everybody reads who is in it, and only the owner of the tables writes it: there is no policy for that.
ALTER TABLE {s}.members ENABLE ROW LEVEL SECURITY;
CREATE POLICY readable ON {s}.members FOR SELECT USING (true);

-- A name that a run of another project has is taken, though the session does not see it: a step that waited
-- to see the run would wait for ever.
CREATE FUNCTION {s}.check_name() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM {s}.runs WHERE id = NEW.id AND project <> NEW.project) THEN
        RAISE unique_violation USING MESSAGE = 'the name of the run is taken';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER check_name BEFORE INSERT ON {s}.runs
    FOR EACH ROW WHEN (NOT {s}.sees_all()) EXECUTE FUNCTION {s}.check_name();
