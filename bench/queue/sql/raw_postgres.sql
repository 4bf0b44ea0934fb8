-- The raw loops on PostgreSQL: the least that a queue must do, and the same rows as tidewheel.
-- Each statement follows a line "-- name: …"; parameters are psycopg's. The schema of the second is
-- tidewheel's own migration: the same columns, checks and indexes without a second list of them.

-- name: schema_minimal
-- The least: a row whose status is flipped.
CREATE TABLE task (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id       text NOT NULL,
    status   text NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'running', 'succeeded')),
    priority bigint NOT NULL DEFAULT 50
);
CREATE INDEX task_ready ON task (priority DESC, seq) WHERE status = 'ready';

-- name: enqueue_minimal
INSERT INTO task (id) SELECT unnest(%(ids)s::text[]);

-- name: claim_minimal
WITH picked AS MATERIALIZED (
    SELECT seq FROM task WHERE status = 'ready'
     ORDER BY priority DESC, seq LIMIT %(batch)s FOR UPDATE SKIP LOCKED
)
UPDATE task SET status = 'running' FROM picked WHERE task.seq = picked.seq
RETURNING task.seq, 1;

-- name: finish_minimal
UPDATE task SET status = 'succeeded'
 WHERE seq = ANY(%(seqs)s) AND status = 'running';

-- name: unfinished_minimal
SELECT EXISTS (SELECT FROM task WHERE status <> 'succeeded');

-- name: settings_rows
-- As the store does: with statistics of tables that fill and empty, the planner sorts the backlog.
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
SET enable_mergejoin = off; SET search_path TO tidewheel;

-- name: enqueue_rows
-- A task, its history entry, its place among the ready ones.
WITH made AS (
    INSERT INTO task (id, queue, handler, priority, status, max_retries, retry, max_lapses,
                      max_termination_seconds, cpu, memory_bytes, gpu, armed, executes,
                      created_at, updated_at, digest)
    SELECT id, 'bench', 'no_op', 50, 'ready', 0, '{"seconds":[0.0]}', 5, 10, 0, 0, 0, true, true,
           now_seconds(), now_seconds(), id
      FROM unnest(%(ids)s::text[]) AS id
    RETURNING seq
), told AS (
    INSERT INTO history (task_seq, at, to_status, attempt, progress)
    SELECT seq, now_seconds(), 'ready', 0, 0 FROM made
)
INSERT INTO ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes, gpu, has_command,
                   handler)
SELECT 'bench', false, -50, seq, now_seconds(), 0, 0, 0, false, 'no_op' FROM made;

-- name: claim_rows
WITH picked AS MATERIALIZED (
    SELECT rank, task_seq FROM ready
     WHERE queue = 'bench' AND NOT delayed AND NOT laned
     ORDER BY rank, task_seq LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM ready USING picked
     WHERE ready.queue = 'bench' AND NOT ready.delayed AND NOT ready.laned AND ready.rank = picked.rank
       AND ready.task_seq = picked.task_seq
    RETURNING ready.task_seq
), claimed AS (
    UPDATE task SET status = 'running', attempt = attempt + 1, owner = %(owner)s,
                    updated_at = now_seconds()
      FROM gone WHERE task.seq = gone.task_seq
    RETURNING task.seq, task.attempt
), joint AS MATERIALIZED (
    SELECT nextval('history_seq_seq') AS seq
), leased AS (
    INSERT INTO lease (task_seq, attempt, owner, queue, claimed_at, lease_seconds, deadline_at, claim_seq)
    SELECT seq, attempt, %(owner)s, 'bench', now_seconds(), 10, now_seconds() + 10, (SELECT seq FROM joint)
      FROM claimed
), told AS (
    INSERT INTO joint_step
           (seq, at, signal, from_status, to_status, worker, progress, task_seqs, attempts)
    SELECT (SELECT seq FROM joint), now_seconds(), 'claim', 'ready', 'running', %(owner)s, 0,
           array_agg(seq), array_agg(attempt)
      FROM claimed HAVING count(*) > 0
)
SELECT seq, attempt FROM claimed;

-- name: finish_rows
WITH ended AS (
    UPDATE task SET status = 'succeeded', progress = 1, updated_at = now_seconds()
      FROM unnest(%(seqs)s::bigint[], %(attempts)s::integer[]) AS done (seq, attempt)
     WHERE task.seq = done.seq AND task.attempt = done.attempt AND task.status = 'running'
    RETURNING task.seq
), joint AS MATERIALIZED (
    SELECT nextval('history_seq_seq') AS seq
), freed AS (
    DELETE FROM lease USING ended WHERE lease.task_seq = ended.seq
    RETURNING lease.task_seq, lease.attempt, lease.owner, lease.claimed_at, lease.claim_seq
), kept AS (
    INSERT INTO attempt
           (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by, claim_seq, end_seq)
    SELECT task_seq, attempt, owner, claimed_at, now_seconds(), now_seconds(), 'succeed', claim_seq,
           (SELECT seq FROM joint)
      FROM freed
)
INSERT INTO joint_step
       (seq, at, signal, from_status, to_status, worker, progress, task_seqs, attempts)
SELECT (SELECT seq FROM joint), now_seconds(), 'succeed', 'running', 'succeeded', min(owner), 1,
       array_agg(task_seq), array_agg(attempt)
  FROM freed HAVING count(*) > 0;

-- name: unfinished_rows
SELECT EXISTS (SELECT FROM tidewheel.task WHERE status <> 'succeeded');
