-- Every write is one call of one function: one round trip, one transaction. A function looks, refuses
-- or writes, and touches `changes` last. {s} stands for the schema.
--
-- Locks are taken in one order, so that writers do not wait for each other in circles: the run, then
-- lanes by their numbers, then rows of the outbox, then the counter of changes.

-- The time that all workers share. Callers that bring their own (tests, the simulator) pass it on.
CREATE FUNCTION {s}.moment(p_now bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

CREATE FUNCTION {s}.changed() RETURNS void LANGUAGE sql AS $$
    UPDATE {s}.changes SET count = count + 1 WHERE shard = pg_backend_pid() & 255
$$;

CREATE FUNCTION {s}.lock_lanes(p_lanes text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_lock bigint;
BEGIN
    FOR v_lock IN
        SELECT DISTINCT hashtextextended('{s}' || lane, 1) AS lock FROM unnest(p_lanes) AS lane
        WHERE lane <> '' ORDER BY lock
    LOOP
        PERFORM pg_advisory_xact_lock(v_lock);
    END LOOP;
END
$$;

-- Makes the next effect of each lane its head. The caller holds the locks of the lanes.
CREATE FUNCTION {s}.promote(p_lanes text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_lane text;
BEGIN
    FOR v_lane IN SELECT DISTINCT lane FROM unnest(p_lanes) AS lane WHERE lane <> '' LOOP
        UPDATE {s}.outbox SET head = true WHERE NOT head AND seq = (
            SELECT seq FROM {s}.outbox WHERE state = 0 AND lane <> '' AND lane = v_lane
            ORDER BY seq LIMIT 1
        );
    END LOOP;
END
$$;

-- Closes effects of a run. Returns how many were pending.
CREATE FUNCTION {s}.close_effects(p_run text, p_keys text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_lanes text[];
BEGIN
    WITH closed AS (
        UPDATE {s}.outbox SET state = 1, claimed_until = NULL
        WHERE key = ANY (p_keys) AND run = p_run AND state = 0 RETURNING lane
    )
    SELECT array_agg(lane) INTO v_lanes FROM closed;
    PERFORM {s}.promote(v_lanes);
    RETURN coalesce(cardinality(v_lanes), 0);
END
$$;

-- Deletes up to `p_rows` rows of the history of a run that is gone. The last ones take its name with
-- them. Returns how many rows may still be deleted.
CREATE FUNCTION {s}.finish(p_run text, p_rows bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := p_rows;
    v_count bigint;
BEGIN
    DELETE FROM {s}.events WHERE run = p_run AND seq IN
        (SELECT seq FROM {s}.events WHERE run = p_run ORDER BY seq LIMIT v_left);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_left := v_left - v_count;
    DELETE FROM {s}.decisions WHERE run = p_run AND (tx, seq) IN
        (SELECT tx, seq FROM {s}.decisions WHERE run = p_run ORDER BY tx, seq LIMIT v_left);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_left := v_left - v_count;
    DELETE FROM {s}.outbox WHERE seq IN (SELECT seq FROM {s}.outbox WHERE run = p_run LIMIT v_left);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_left := v_left - v_count;
    DELETE FROM {s}.parts WHERE run = p_run AND key IN
        (SELECT key FROM {s}.parts WHERE run = p_run LIMIT v_left);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_left := v_left - v_count;
    IF v_left > 0 THEN
        DELETE FROM {s}.doomed WHERE run = p_run;
    END IF;
    RETURN v_left;
END
$$;

-- Returns the first event of these whose source is known or comes twice.
CREATE FUNCTION {s}.known_source(
    p_run text, p_sources text[],
    OUT o_source text, OUT o_digest text, OUT o_revision bigint
) LANGUAGE sql STABLE AS $$
    SELECT given.source, known.digest, known.revision
    FROM (
        SELECT source, place, row_number() OVER (PARTITION BY source ORDER BY place) AS occurrence
        FROM unnest(p_sources) WITH ORDINALITY AS listed (source, place) WHERE source IS NOT NULL
    ) AS given
    LEFT JOIN {s}.events AS known ON known.run = p_run AND known.source = given.source
    WHERE known.run IS NOT NULL OR given.occurrence > 1
    ORDER BY given.place LIMIT 1
$$;

-- Writes one step, or says why not. Outcomes: 0 written, 1 fenced, 2 duplicate, 3 no such run,
-- 4 conflict. `o_number` is the last event, the fencing number or the revision that was found.
CREATE FUNCTION {s}.commit_step(
    p_run text, p_expected bigint, p_fence bigint, p_at bigint,
    p_project text, p_session text, p_machine text, p_driver text, p_title text, p_active boolean,
    p_state text,
    p_event_at bigint[], p_event_kind text[], p_event_body text[], p_event_source text[],
    p_event_digest text[],
    p_decision_at bigint[], p_decision_body text[],
    p_effect_key text[], p_effect_kind text[], p_effect_body text[], p_effect_due bigint[],
    p_effect_lane text[], p_effect_requires text[],
    p_done text[],
    p_timer_key text[], p_timer_due bigint[],
    p_part_key text[], p_part_body text[],
    OUT o_outcome integer, OUT o_number bigint, OUT o_source text, OUT o_digest text,
    OUT o_revision bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_run record;
    v_exists boolean;
    v_last bigint;
    v_tx bigint;
BEGIN
    LOOP
        SELECT revision, last_event, fence INTO v_run FROM {s}.runs WHERE id = p_run
        FOR NO KEY UPDATE;
        v_exists := FOUND;
        IF NOT v_exists THEN
            -- The sources of an old run of that name are still there.
            PERFORM 1 FROM {s}.doomed WHERE run = p_run FOR UPDATE;
            IF FOUND THEN
                PERFORM {s}.finish(p_run, 9223372036854775807);
            END IF;
        END IF;
        IF p_fence IS NOT NULL AND p_fence <> coalesce(v_run.fence, 0) THEN
            o_outcome := 1;
            o_number := coalesce(v_run.fence, 0);
            RETURN;
        END IF;
        IF cardinality(array_remove(p_event_source, NULL)) > 0 THEN
            SELECT known.o_source, known.o_digest, known.o_revision
            INTO o_source, o_digest, o_revision
            FROM {s}.known_source(p_run, p_event_source) AS known;
            IF o_source IS NOT NULL THEN
                o_outcome := 2;
                RETURN;
            END IF;
        END IF;
        IF coalesce(v_run.revision, 0) <> p_expected THEN
            o_outcome := CASE WHEN v_exists THEN 4 ELSE 3 END;
            o_number := coalesce(v_run.revision, 0);
            RETURN;
        END IF;
        o_revision := p_expected + 1;
        v_last := coalesce(v_run.last_event, 0);
        o_number := v_last + cardinality(p_event_at);
        EXIT WHEN v_exists;
        INSERT INTO {s}.runs (id, project, session, machine, driver, active, revision, last_event,
            created, updated, ended, title, state)
        VALUES (p_run, p_project, p_session, p_machine, p_driver, p_active, o_revision, o_number,
            p_at, p_at, CASE WHEN p_active THEN NULL ELSE p_at END, p_title, p_state)
        ON CONFLICT (id) DO NOTHING;
        -- Somebody else may have created it meanwhile.
        EXIT WHEN FOUND;
    END LOOP;
    IF v_exists THEN
        UPDATE {s}.runs SET project = p_project, session = p_session, machine = p_machine,
            driver = p_driver, active = p_active, revision = o_revision, last_event = o_number,
            updated = p_at, ended = CASE WHEN p_active THEN NULL ELSE p_at END, title = p_title,
            state = p_state
        WHERE id = p_run;
    END IF;
    IF cardinality(p_event_at) > 0 THEN
        INSERT INTO {s}.events (run, seq, at, kind, source, digest, revision, body)
        SELECT p_run, v_last + place, at, kind, source, digest, o_revision, body
        FROM unnest(p_event_at, p_event_kind, p_event_body, p_event_source, p_event_digest)
            WITH ORDINALITY AS given (at, kind, body, source, digest, place);
    END IF;
    IF cardinality(p_decision_at) > 0 THEN
        SELECT pg_current_xact_id()::text::bigint + tx_offset INTO v_tx FROM {s}.store;
        FOR i IN 1 .. cardinality(p_decision_at) LOOP
            INSERT INTO {s}.decisions (tx, run, revision, at, body)
            VALUES (v_tx, p_run, o_revision, p_decision_at[i], p_decision_body[i]);
        END LOOP;
    END IF;
    IF cardinality(p_effect_key) > 0 OR cardinality(p_done) > 0 THEN
        PERFORM {s}.write_effects(p_run, p_effect_key, p_effect_kind, p_effect_body, p_effect_due,
            p_effect_lane, p_effect_requires, p_done);
    END IF;
    FOR i IN 1 .. cardinality(p_timer_key) LOOP
        IF p_timer_due[i] IS NULL THEN
            DELETE FROM {s}.timers WHERE run = p_run AND key = p_timer_key[i];
        ELSE
            INSERT INTO {s}.timers (run, key, due) VALUES (p_run, p_timer_key[i], p_timer_due[i])
            ON CONFLICT (run, key) DO UPDATE SET due = excluded.due;
        END IF;
    END LOOP;
    FOR i IN 1 .. cardinality(p_part_key) LOOP
        IF p_part_body[i] IS NULL THEN
            DELETE FROM {s}.parts WHERE run = p_run AND key = p_part_key[i];
        ELSE
            INSERT INTO {s}.parts (run, key, body) VALUES (p_run, p_part_key[i], p_part_body[i])
            ON CONFLICT (run, key) DO UPDATE SET body = excluded.body;
        END IF;
    END LOOP;
    PERFORM {s}.changed();
    o_outcome := 0;
END
$$;

-- Enqueues the effects of a step and closes those that were performed. `requires` is one text for
-- each effect: its labels, each with a line feed.
CREATE FUNCTION {s}.write_effects(
    p_run text, p_key text[], p_kind text[], p_body text[], p_due bigint[], p_lane text[],
    p_requires text[], p_done text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {s}.lock_lanes(p_lane || ARRAY(
        SELECT lane FROM {s}.outbox WHERE key = ANY (p_done) AND run = p_run AND state = 0
    ));
    FOR i IN 1 .. cardinality(p_key) LOOP
        INSERT INTO {s}.outbox (key, run, due, kind, body, lane, requires, head)
        VALUES (p_key[i], p_run, p_due[i], p_kind[i], p_body[i], p_lane[i],
            {s}.labels(p_requires[i]),
            p_lane[i] = '' OR NOT EXISTS (
                SELECT 1 FROM {s}.outbox WHERE state = 0 AND lane <> '' AND lane = p_lane[i]
            ))
        ON CONFLICT (key) DO NOTHING;
    END LOOP;
    IF cardinality(p_done) > 0 THEN
        PERFORM {s}.close_effects(p_run, p_done);
    END IF;
END
$$;

CREATE FUNCTION {s}.labels(p_text text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_text = '' THEN '{}'::text[] ELSE string_to_array(left(p_text, -1), E'\n') END
$$;

-- Outcomes as of `commit_step`.
CREATE FUNCTION {s}.effects_done(
    p_run text, p_fence bigint, p_keys text[], OUT o_outcome integer, OUT o_number bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_fence bigint;
BEGIN
    SELECT fence INTO v_fence FROM {s}.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF p_fence IS NOT NULL AND p_fence <> coalesce(v_fence, 0) THEN
        o_outcome := 1;
        o_number := coalesce(v_fence, 0);
        RETURN;
    END IF;
    IF v_fence IS NULL THEN
        o_outcome := 3;
        RETURN;
    END IF;
    PERFORM {s}.lock_lanes(ARRAY(
        SELECT lane FROM {s}.outbox WHERE key = ANY (p_keys) AND run = p_run AND state = 0
    ));
    o_outcome := 0;
    o_number := {s}.close_effects(p_run, p_keys);
    IF o_number > 0 THEN
        PERFORM {s}.changed();
    END IF;
END
$$;

-- Finds the first heads that can be claimed, and locks them. Whoever claims at the same time gets
-- others (SKIP LOCKED).
CREATE FUNCTION {s}.lock_heads(
    p_kinds text[], p_lane text, p_run text, p_labels text[], p_limit bigint, p_now bigint
) RETURNS SETOF {s}.outbox LANGUAGE sql AS $$
    SELECT * FROM {s}.outbox
    WHERE state = 0 AND head AND due <= p_now AND (claimed_until IS NULL OR claimed_until <= p_now)
        AND (p_kinds IS NULL OR kind = ANY (p_kinds)) AND (p_run IS NULL OR run = p_run)
        AND (p_lane IS NULL OR lane = p_lane) AND requires <@ p_labels
    ORDER BY seq LIMIT p_limit FOR UPDATE SKIP LOCKED
$$;

CREATE FUNCTION {s}.claim(
    p_kinds text[], p_lane text, p_run text, p_labels text[], p_worker text, p_limit bigint,
    p_given_now bigint, p_ttl bigint
) RETURNS SETOF {s}.outbox LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := {s}.moment(p_given_now);
    v_head record;
    v_next record;
    v_chosen bigint[] := '{}';
BEGIN
    FOR v_head IN SELECT * FROM {s}.lock_heads(p_kinds, p_lane, p_run, p_labels, p_limit, v_now) LOOP
        v_chosen := v_chosen || v_head.seq;
        CONTINUE WHEN v_head.lane = '' OR p_limit <= 1;
        -- What follows in the lane, as far as it can be handed out too.
        FOR v_next IN
            SELECT * FROM {s}.outbox
            WHERE state = 0 AND lane <> '' AND lane = v_head.lane AND seq > v_head.seq
            ORDER BY seq LIMIT p_limit - 1
        LOOP
            EXIT WHEN v_next.due > v_now OR v_next.claimed_until > v_now
                OR NOT (p_kinds IS NULL OR v_next.kind = ANY (p_kinds))
                OR NOT (p_run IS NULL OR v_next.run = p_run) OR NOT v_next.requires <@ p_labels;
            PERFORM 1 FROM {s}.outbox
            WHERE seq = v_next.seq AND state = 0 AND claim = v_next.claim AND due = v_next.due
            FOR UPDATE SKIP LOCKED;
            EXIT WHEN NOT FOUND;
            v_chosen := v_chosen || v_next.seq;
        END LOOP;
    END LOOP;
    IF cardinality(v_chosen) = 0 THEN
        RETURN;
    END IF;
    -- A head that was not looked at is behind all of them.
    RETURN QUERY
        WITH claimed AS (
            UPDATE {s}.outbox SET claim = claim + 1, worker = p_worker,
                claimed_until = {s}.later(v_now, p_ttl)
            WHERE seq IN (SELECT seq FROM unnest(v_chosen) AS seq ORDER BY seq LIMIT p_limit)
            RETURNING *
        )
        SELECT * FROM claimed ORDER BY seq;
    PERFORM {s}.changed();
END
$$;

-- Adds without going beyond the last moment.
CREATE FUNCTION {s}.later(p_now bigint, p_ttl bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_now > 0 AND p_ttl > 9223372036854775807 - p_now
        THEN 9223372036854775807 ELSE p_now + p_ttl END
$$;

-- Keeps claims. Returns for each whether it was kept.
CREATE FUNCTION {s}.keep(p_keys text[], p_claims bigint[], p_given_now bigint, p_ttl bigint)
RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    v_until bigint := {s}.later({s}.moment(p_given_now), p_ttl);
    v_kept boolean[] := '{}';
BEGIN
    FOR i IN 1 .. cardinality(p_keys) LOOP
        UPDATE {s}.outbox SET claimed_until = v_until
        WHERE key = p_keys[i] AND state = 0 AND claim = p_claims[i] AND claimed_until IS NOT NULL;
        v_kept := v_kept || FOUND;
    END LOOP;
    IF true = ANY (v_kept) THEN
        PERFORM {s}.changed();
    END IF;
    RETURN v_kept;
END
$$;

-- Closes a claim: done without an error; else tried again at `p_next`, or never.
CREATE FUNCTION {s}.settle(p_key text, p_claim bigint, p_error text, p_next bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_lanes text[] := ARRAY(SELECT lane FROM {s}.outbox WHERE key = p_key);
BEGIN
    PERFORM {s}.lock_lanes(v_lanes);
    UPDATE {s}.outbox SET
        state = CASE WHEN p_error IS NULL THEN 1 WHEN p_next IS NULL THEN 2 ELSE 0 END,
        attempts = attempts + CASE WHEN p_error IS NULL THEN 0 ELSE 1 END,
        error = coalesce(p_error, error), due = coalesce(p_next, due), claimed_until = NULL
    WHERE key = p_key AND state = 0 AND claim = p_claim AND claimed_until IS NOT NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM {s}.promote(v_lanes);
    PERFORM {s}.changed();
    RETURN true;
END
$$;

CREATE FUNCTION {s}.trim_lane(p_lane text, p_keep bigint, p_given_now bigint, p_error text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    PERFORM {s}.lock_lanes(ARRAY[p_lane]);
    UPDATE {s}.outbox SET state = 2, error = p_error, claimed_until = NULL
    WHERE (claimed_until IS NULL OR claimed_until <= {s}.moment(p_given_now)) AND seq IN (
        SELECT seq FROM {s}.outbox WHERE state = 0 AND lane <> '' AND lane = p_lane
        ORDER BY seq DESC OFFSET p_keep
    );
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count > 0 THEN
        PERFORM {s}.promote(ARRAY[p_lane]);
        PERFORM {s}.changed();
    END IF;
    RETURN v_count;
END
$$;

-- Outcomes: 0 given, 1 held by another, 3 no such run.
CREATE FUNCTION {s}.acquire_lease(
    p_run text, p_holder text, p_given_now bigint, p_ttl bigint,
    OUT o_outcome integer, OUT o_fence bigint, OUT o_holder text, OUT o_until bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := {s}.moment(p_given_now);
BEGIN
    SELECT fence, lease_holder, lease_until INTO o_fence, o_holder, o_until
    FROM {s}.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        o_outcome := 3;
    ELSIF o_holder <> p_holder AND o_until > v_now THEN
        o_outcome := 1;
    ELSE
        -- Waiting for the row took time, too.
        v_now := {s}.moment(p_given_now);
        UPDATE {s}.runs SET fence = fence + 1, lease_holder = p_holder,
            lease_until = {s}.later(v_now, p_ttl)
        WHERE id = p_run RETURNING fence, lease_until INTO o_fence, o_until;
        PERFORM {s}.changed();
        o_outcome := 0;
        o_holder := p_holder;
    END IF;
END
$$;

-- Outcomes: 0 kept, 1 lost, 3 no such run.
CREATE FUNCTION {s}.renew_lease(
    p_run text, p_holder text, p_fence bigint, p_given_now bigint, p_ttl bigint,
    OUT o_outcome integer, OUT o_fence bigint, OUT o_until bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_holder text;
BEGIN
    SELECT fence, lease_holder INTO o_fence, v_holder FROM {s}.runs WHERE id = p_run
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        o_outcome := 3;
    ELSIF o_fence <> p_fence OR v_holder IS DISTINCT FROM p_holder THEN
        o_outcome := 1;
    ELSE
        UPDATE {s}.runs SET lease_until = {s}.later({s}.moment(p_given_now), p_ttl)
        WHERE id = p_run RETURNING lease_until INTO o_until;
        PERFORM {s}.changed();
        o_outcome := 0;
    END IF;
END
$$;

-- Ends a lease. With a holder it is given back; without one it is broken, and its number is void.
CREATE FUNCTION {s}.end_lease(p_run text, p_fence bigint, p_holder text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {s}.runs SET lease_holder = NULL, lease_until = NULL,
        fence = fence + CASE WHEN p_holder IS NULL THEN 1 ELSE 0 END
    WHERE id = p_run AND fence = p_fence AND lease_holder IS NOT NULL
        AND (p_holder IS NULL OR lease_holder = p_holder);
    IF FOUND THEN
        PERFORM {s}.changed();
        RETURN true;
    END IF;
    RETURN false;
END
$$;

-- Deletes what others would act on, then the run itself. Returns how many rows that were.
CREATE FUNCTION {s}.doom(p_run text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_lanes text[] := ARRAY(SELECT lane FROM {s}.outbox WHERE state = 0 AND run = p_run);
    v_count bigint;
BEGIN
    PERFORM {s}.lock_lanes(v_lanes);
    DELETE FROM {s}.timers WHERE run = p_run;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM {s}.outbox WHERE state = 0 AND run = p_run;
    PERFORM {s}.promote(v_lanes);
    UPDATE {s}.store SET pruned_tx = last.tx, pruned_seq = last.seq
    FROM (
        SELECT tx, seq FROM {s}.decisions WHERE run = p_run ORDER BY tx DESC, seq DESC LIMIT 1
    ) AS last
    WHERE (last.tx, last.seq) > (pruned_tx, pruned_seq);
    INSERT INTO {s}.doomed (run) VALUES (p_run) ON CONFLICT DO NOTHING;
    DELETE FROM {s}.runs WHERE id = p_run;
    RETURN v_count + cardinality(v_lanes) + 1;
END
$$;

-- Deletes about `p_rows` rows of runs that ended before, and of up to `p_limit` runs that were not
-- doomed yet. Returns those, and whether there may be more to do.
CREATE FUNCTION {s}.prune(
    p_before bigint, p_limit bigint, p_rows bigint, OUT o_gone text[], OUT o_more boolean
) LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := p_rows;
    v_run text;
BEGIN
    o_gone := '{}';
    o_more := true;
    LOOP
        LOOP
            SELECT run INTO v_run FROM {s}.doomed LIMIT 1 FOR UPDATE SKIP LOCKED;
            EXIT WHEN NOT FOUND;
            v_left := {s}.finish(v_run, v_left);
            PERFORM {s}.changed();
            IF v_left <= 0 THEN
                RETURN;
            END IF;
        END LOOP;
        EXIT WHEN cardinality(o_gone) >= p_limit;
        SELECT id INTO v_run FROM {s}.runs WHERE ended IS NOT NULL AND ended < p_before
        ORDER BY ended, number LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        v_left := greatest(v_left - {s}.doom(v_run), 1);
        o_gone := o_gone || v_run;
    END LOOP;
    o_more := false;
END
$$;

CREATE FUNCTION {s}.probe() RETURNS void LANGUAGE sql AS $$
    UPDATE {s}.store SET probes = probes + 1;
    SELECT {s}.changed()
$$;
