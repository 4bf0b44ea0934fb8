-- The raw loops on SQLite: the least that a queue must do, and the same rows as tidewheel.
-- Each statement follows a line "-- name: …". The schema of the second is tidewheel's own
-- migration: the same columns, checks and indexes without a second list of them. :batch is JSON [[seq, attempt], …], :ids ["…", …].

-- name: schema_minimal
-- The least: a row whose status is flipped.
CREATE TABLE task (
    seq      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL,
    status   TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'running', 'succeeded')),
    priority INTEGER NOT NULL DEFAULT 50
) STRICT;
CREATE INDEX task_ready ON task (priority DESC, seq) WHERE status = 'ready';

-- name: enqueue_minimal
INSERT INTO task (id) SELECT value FROM json_each(:ids);

-- name: claim_minimal
UPDATE task SET status = 'running'
 WHERE seq IN (SELECT seq FROM task WHERE status = 'ready'
                ORDER BY priority DESC, seq LIMIT :limit)
RETURNING seq, 1;

-- name: finish_minimal
UPDATE task SET status = 'succeeded'
 WHERE status = 'running' AND seq IN (SELECT value ->> 0 FROM json_each(:batch));

-- name: unfinished
SELECT EXISTS (SELECT 1 FROM task WHERE status <> 'succeeded');

-- name: enqueue_rows
-- A task, its history entry, its place among the ready ones.
CREATE TEMP TRIGGER IF NOT EXISTS told AFTER INSERT ON main.task BEGIN
    INSERT INTO history (task_seq, at, to_status, attempt, progress)
    VALUES (new.seq, new.created_at, 'ready', 0, 0);
    INSERT INTO ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes, gpu,
                       has_command, handler)
    VALUES ('bench', 0, -50, new.seq, new.created_at, 0, 0, 0, 0, 'no_op');
END;
INSERT INTO task (id, queue, handler, priority, status, max_retries, retry, max_lapses,
                  max_termination_seconds, cpu, memory_bytes, gpu, armed, executes,
                  created_at, updated_at, digest)
SELECT value, 'bench', 'no_op', 50, 'ready', 0, '{"seconds":[0.0]}', 5, 10, 0, 0, 0, 1, 1,
       unixepoch('subsec'), unixepoch('subsec'), value
  FROM json_each(:ids);

-- name: claim_rows
UPDATE task SET status = 'running', attempt = attempt + 1, owner = :owner,
                updated_at = unixepoch('subsec')
 WHERE seq IN (SELECT task_seq FROM ready WHERE queue = 'bench' AND delayed = 0 AND laned = 0
                ORDER BY rank, task_seq LIMIT :limit)
RETURNING seq, attempt;

-- name: lease_rows
-- The second half of a claim: what was claimed gets its lease and its history entry, and is not
-- ready any more.
INSERT INTO lease (task_seq, attempt, owner, queue, claimed_at, lease_seconds, deadline_at)
SELECT value ->> 0, value ->> 1, :owner, 'bench', unixepoch('subsec'), 10,
       unixepoch('subsec') + 10
  FROM json_each(:batch);
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT value ->> 0, unixepoch('subsec'), 'claim', 'ready', 'running', value ->> 1, :owner, 0
  FROM json_each(:batch);
DELETE FROM ready
 WHERE queue = 'bench' AND delayed = 0 AND laned = 0 AND rank = -50
   AND task_seq IN (SELECT value ->> 0 FROM json_each(:batch));

-- name: finish_rows
UPDATE task SET status = 'succeeded', progress = 1, updated_at = unixepoch('subsec')
  FROM (SELECT value ->> 0 AS seq, value ->> 1 AS attempt FROM json_each(:batch)) AS done
 WHERE task.seq = done.seq AND task.attempt = done.attempt AND task.status = 'running';
INSERT INTO attempt (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by)
SELECT task_seq, attempt, owner, claimed_at, unixepoch('subsec'), unixepoch('subsec'), 'succeed'
  FROM json_each(:batch) JOIN lease ON task_seq = value ->> 0 AND attempt = value ->> 1;
DELETE FROM lease
 WHERE task_seq IN (SELECT value ->> 0 FROM json_each(:batch));
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT value ->> 0, unixepoch('subsec'), 'succeed', 'running', 'succeeded', value ->> 1, :owner, 1
  FROM json_each(:batch);
