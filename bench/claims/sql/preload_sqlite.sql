-- Tasks as the store itself would have left them: ended with all their rows, or ready.
WITH RECURSIVE numbers (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :count
)
INSERT INTO task (id, queue, handler, priority, status, attempt, max_retries, retry, max_lapses,
                  max_termination_seconds, cpu, memory_bytes, gpu, armed, executes, owner,
                  progress, created_at, updated_at, digest)
SELECT lower(hex(randomblob(16))), 'bench', 'no_op', 50, :status, :status = 'succeeded', 0,
       '{"seconds":[0.0]}', 5, 10, 0, 0, 0, 1, 1,
       CASE WHEN :status = 'succeeded' THEN 'worker-0' END, :status = 'succeeded',
       unixepoch('subsec') - 60, unixepoch('subsec') - 60, lower(hex(randomblob(16)))
  FROM numbers;
INSERT INTO history (task_seq, at, to_status, attempt, progress)
SELECT seq, created_at, 'ready', 0, 0 FROM task ORDER BY seq;
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'claim', 'ready', 'running', 1, owner, 0
  FROM task WHERE status = 'succeeded' ORDER BY seq;
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'succeed', 'running', 'succeeded', 1, owner, 1
  FROM task WHERE status = 'succeeded' ORDER BY seq;
INSERT INTO attempt (task_seq, attempt, worker, claimed_at, ended_at, ended_by)
SELECT seq, 1, owner, updated_at, updated_at, 'succeed' FROM task WHERE status = 'succeeded';
INSERT INTO ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes, gpu, has_command,
                   handler)
SELECT queue, 0, -priority, seq, created_at, 0, 0, 0, 0, handler
  FROM task WHERE status = 'ready' ORDER BY seq;
