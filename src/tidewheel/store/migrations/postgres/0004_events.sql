-- What followers of a store are told (PostgreSQL): steps of tasks are in history, with (xid, seq) as
-- their place since the first version; here is the same for runs, and how far back it reaches.

-- Append-only, written by the triggers below: no caller can forget it. Its seqs are those of history,
-- so that one order holds for both. Names stand here because the run may be gone when this is read.
CREATE TABLE tidewheel.run_history (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint NOT NULL DEFAULT nextval('tidewheel.history_seq_seq'),
    at double precision NOT NULL,
    run bigint NOT NULL,
    name text NOT NULL,
    workflow text NOT NULL,
    queue text NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    batch bigint NOT NULL,
    PRIMARY KEY (xid, seq)
);

CREATE INDEX run_history_run ON tidewheel.run_history (run);
CREATE INDEX run_history_deleted ON tidewheel.run_history (at) WHERE status = 'deleted';

-- The last place of which something was deleted; a reader that has not come so far has missed it.
CREATE TABLE tidewheel.event_floor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    xid xid8 NOT NULL,
    seq bigint NOT NULL
);

CREATE FUNCTION tidewheel.tell_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tidewheel.run_history (at, run, name, workflow, queue, status, reason, batch)
    VALUES (NEW.updated_at, NEW.number, NEW.name, NEW.workflow, NEW.queue, NEW.status, NEW.reason,
            NEW.batch);
    RETURN NULL;
END $$;

CREATE TRIGGER run_is_told AFTER INSERT ON tidewheel.run
    FOR EACH ROW EXECUTE FUNCTION tidewheel.tell_run();
CREATE TRIGGER run_change_is_told AFTER UPDATE OF batch, status ON tidewheel.run
    FOR EACH ROW WHEN (OLD.batch <> NEW.batch OR OLD.status <> NEW.status)
    EXECUTE FUNCTION tidewheel.tell_run();

-- What is left of a deleted run is that it was; after a month not even that.
CREATE FUNCTION tidewheel.forget_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM tidewheel.run_history WHERE run = OLD.number AND status <> 'deleted';
    DELETE FROM tidewheel.run_history WHERE status = 'deleted' AND at < OLD.updated_at - 2592000;
    RETURN NULL;
END $$;

CREATE TRIGGER run_is_forgotten AFTER DELETE ON tidewheel.run
    FOR EACH ROW EXECUTE FUNCTION tidewheel.forget_run();

CREATE FUNCTION tidewheel.raise_event_floor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tidewheel.event_floor AS floor (xid, seq)
    SELECT xid, seq FROM gone ORDER BY xid DESC, seq DESC LIMIT 1
        ON CONFLICT (one) DO UPDATE SET xid = EXCLUDED.xid, seq = EXCLUDED.seq
     WHERE (floor.xid, floor.seq) < (EXCLUDED.xid, EXCLUDED.seq);
    RETURN NULL;
END $$;

CREATE TRIGGER history_is_deleted AFTER DELETE ON tidewheel.history
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.raise_event_floor();
CREATE TRIGGER run_history_is_deleted AFTER DELETE ON tidewheel.run_history
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.raise_event_floor();
