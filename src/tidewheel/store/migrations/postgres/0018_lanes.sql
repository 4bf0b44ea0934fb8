-- Lanes (PostgreSQL): a claim looks at the heads of keys that have room, and at no other task. Keyed tasks of a queue with limits
-- of keys, or that is fair, stand apart in `ready`, where the claims of other queues do not pass by; `lane` has the head of each key.

ALTER TABLE tidewheel.queue
    ADD COLUMN fair boolean NOT NULL DEFAULT false,  -- each key gets its turn
    ADD COLUMN lanes boolean NOT NULL DEFAULT false,  -- it is fair, or has a limit of a key
    ADD COLUMN turns bigint NOT NULL DEFAULT 0;  -- how many were given, if it is fair

UPDATE tidewheel.queue SET lanes = true WHERE name IN (SELECT queue FROM tidewheel.queue_limit WHERE key <> '');

ALTER TABLE tidewheel.ready
    ADD COLUMN laned boolean NOT NULL DEFAULT false;  -- it has a limit key, and its queue has lanes

UPDATE tidewheel.ready SET laned = true
 WHERE limit_key IS NOT NULL AND queue IN (SELECT name FROM tidewheel.queue WHERE lanes);

ALTER TABLE tidewheel.ready DROP CONSTRAINT ready_pkey;
ALTER TABLE tidewheel.ready ADD PRIMARY KEY (queue, delayed, laned, rank, task_seq);

-- Whoever asks by a key writes `delayed::integer = 0`, too: the primary key, which the planner might prefer, has no such order.
CREATE INDEX ready_lane ON tidewheel.ready (queue, limit_key, rank, task_seq) WHERE laned AND delayed::integer = 0;

CREATE INDEX lease_key ON tidewheel.lease (queue, limit_key) WHERE limit_key IS NOT NULL;

CREATE TABLE tidewheel.lane (  -- keys of which a task is ready
    key text NOT NULL,
    queue text NOT NULL,
    turn bigint NOT NULL,  -- the latest that it had; 0 in a queue that is not fair
    rank bigint NOT NULL,  -- of the first task
    task_seq bigint NOT NULL,  -- the first task
    closed boolean NOT NULL,  -- there is no room
    opens_at double precision,  -- when its rate gives it room again
    PRIMARY KEY (key, queue)
);

CREATE INDEX lane_heads ON tidewheel.lane (queue, turn, rank, task_seq) WHERE NOT closed;
CREATE INDEX lane_opens ON tidewheel.lane (queue, opens_at) WHERE opens_at IS NOT NULL;

-- Which lanes the next claim has to look at anew: a task came or went, or a lease ended. Rows are only added, each transaction its
-- own, so nobody waits for anybody; a claim takes those that it can see.
CREATE TABLE tidewheel.lane_news (
    queue text NOT NULL,
    key text NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (queue, key, xid)
);

INSERT INTO tidewheel.lane_news (queue, key)
SELECT DISTINCT queue, limit_key FROM tidewheel.ready WHERE laned AND NOT delayed;

ALTER TABLE tidewheel.lane SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tidewheel.lane_news SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

CREATE FUNCTION tidewheel.tell_lane() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'lease' THEN
        INSERT INTO tidewheel.lane_news (queue, key)
        SELECT name, OLD.limit_key FROM tidewheel.queue WHERE name = OLD.queue AND lanes
            ON CONFLICT DO NOTHING;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO tidewheel.lane_news (queue, key) VALUES (OLD.queue, OLD.limit_key) ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO tidewheel.lane_news (queue, key) VALUES (NEW.queue, NEW.limit_key) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER ready_came AFTER INSERT OR UPDATE OF delayed ON tidewheel.ready
    FOR EACH ROW WHEN (NEW.laned AND NOT NEW.delayed) EXECUTE FUNCTION tidewheel.tell_lane();
CREATE TRIGGER ready_went AFTER DELETE ON tidewheel.ready
    FOR EACH ROW WHEN (OLD.laned AND NOT OLD.delayed) EXECUTE FUNCTION tidewheel.tell_lane();
CREATE TRIGGER lease_ended AFTER DELETE ON tidewheel.lease
    FOR EACH ROW WHEN (OLD.limit_key IS NOT NULL) EXECUTE FUNCTION tidewheel.tell_lane();
