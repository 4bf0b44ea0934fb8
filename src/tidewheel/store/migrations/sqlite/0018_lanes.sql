-- Lanes (SQLite): a claim looks at the heads of keys that have room, and at no other task. Keyed tasks of a queue with limits
-- of keys, or that is fair, stand apart in `ready`, where the claims of other queues do not pass by; `lane` has the head of each key.

ALTER TABLE queue ADD COLUMN fair INTEGER NOT NULL DEFAULT 0;  -- each key gets its turn
ALTER TABLE queue ADD COLUMN lanes INTEGER NOT NULL DEFAULT 0;  -- it is fair, or has a limit of a key
ALTER TABLE queue ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;  -- how many were given, if it is fair

UPDATE queue SET lanes = 1 WHERE name IN (SELECT queue FROM queue_limit WHERE key <> '');

CREATE TABLE ready_again (
    queue TEXT NOT NULL,
    delayed INTEGER NOT NULL,
    laned INTEGER NOT NULL DEFAULT 0,  -- it has a limit key, and its queue has lanes
    rank INTEGER NOT NULL,  -- minus priority
    task_seq INTEGER NOT NULL,
    due_at REAL,
    ready_at REAL NOT NULL,
    cpu REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    gpu INTEGER NOT NULL,
    labels TEXT,
    has_command INTEGER NOT NULL,
    handler TEXT,
    limit_key TEXT,
    nodes INTEGER NOT NULL DEFAULT 1,
    exclusive INTEGER NOT NULL DEFAULT 0,
    buffer_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, delayed, laned, rank, task_seq)
) WITHOUT ROWID, STRICT;

INSERT INTO ready_again (queue, delayed, laned, rank, task_seq, due_at, ready_at, cpu, memory_bytes, gpu, labels, has_command,
                         handler, limit_key, nodes, exclusive, buffer_bytes)
SELECT queue, delayed, limit_key IS NOT NULL AND queue IN (SELECT name FROM queue WHERE lanes), rank, task_seq, due_at, ready_at,
       cpu, memory_bytes, gpu, labels, has_command, handler, limit_key, nodes, exclusive, buffer_bytes
  FROM ready;

DROP TABLE ready;

ALTER TABLE ready_again RENAME TO ready;

CREATE INDEX ready_due ON ready (queue, due_at) WHERE delayed;
CREATE INDEX ready_lane ON ready (queue, limit_key, rank, task_seq) WHERE laned AND delayed = 0;

CREATE INDEX lease_key ON lease (queue, limit_key) WHERE limit_key IS NOT NULL;

CREATE TABLE lane (  -- keys of which a task is ready
    key TEXT NOT NULL,
    queue TEXT NOT NULL,
    turn INTEGER NOT NULL,  -- the latest that it had; 0 in a queue that is not fair
    rank INTEGER NOT NULL,  -- of the first task
    task_seq INTEGER NOT NULL,  -- the first task
    closed INTEGER NOT NULL,  -- there is no room
    opens_at REAL,  -- when its rate gives it room again
    PRIMARY KEY (key, queue)
) WITHOUT ROWID, STRICT;

CREATE INDEX lane_heads ON lane (queue, turn, rank, task_seq) WHERE NOT closed;
CREATE INDEX lane_opens ON lane (queue, opens_at) WHERE opens_at IS NOT NULL;

-- Which lanes the next claim has to look at anew: a task came or went, or a lease ended.
CREATE TABLE lane_news (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID, STRICT;

INSERT INTO lane_news (queue, key) SELECT DISTINCT queue, limit_key FROM ready WHERE laned AND delayed = 0;

CREATE TRIGGER ready_came AFTER INSERT ON ready WHEN NEW.laned AND NOT NEW.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (NEW.queue, NEW.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER ready_is_due AFTER UPDATE OF delayed ON ready WHEN NEW.laned AND NOT NEW.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (NEW.queue, NEW.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER ready_went AFTER DELETE ON ready WHEN OLD.laned AND NOT OLD.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (OLD.queue, OLD.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER lease_ended AFTER DELETE ON lease WHEN OLD.limit_key IS NOT NULL
BEGIN
    INSERT INTO lane_news (queue, key)
    SELECT name, OLD.limit_key FROM queue WHERE name = OLD.queue AND lanes
        ON CONFLICT DO NOTHING;
END;
