-- Tasks as the store itself would have left them: ended with all their rows, or ready.
INSERT INTO tidewheel.task (id, queue, handler, priority, status, attempt, max_retries, retry,
                            max_lapses, max_termination_seconds, cpu, memory_bytes, gpu, armed,
                            executes, owner, progress, created_at, updated_at, digest)
SELECT gen_random_uuid()::text, 'bench', 'no_op', 50, %(status)s, ended.flag, 0,
       '{"seconds":[0.0]}', 5, 10, 0, 0, 0, true, true,
       CASE WHEN ended.flag = 1 THEN 'worker-0' END, ended.flag,
       tidewheel.now_seconds() - 60, tidewheel.now_seconds() - 60, md5(number::text)
  FROM generate_series(1, %(count)s) AS number,
       (SELECT (%(status)s = 'succeeded')::integer AS flag) AS ended;
INSERT INTO tidewheel.history (task_seq, at, to_status, attempt, progress)
SELECT seq, created_at, 'ready', 0, 0 FROM tidewheel.task ORDER BY seq;
INSERT INTO tidewheel.history
       (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'claim', 'ready', 'running', 1, owner, 0
  FROM tidewheel.task WHERE status = 'succeeded' ORDER BY seq;
INSERT INTO tidewheel.history
       (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'succeed', 'running', 'succeeded', 1, owner, 1
  FROM tidewheel.task WHERE status = 'succeeded' ORDER BY seq;
INSERT INTO tidewheel.attempt (task_seq, attempt, worker, claimed_at, ended_at, ended_by)
SELECT seq, 1, owner, updated_at, updated_at, 'succeed'
  FROM tidewheel.task WHERE status = 'succeeded';
INSERT INTO tidewheel.ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes, gpu,
                             has_command, handler)
SELECT queue, false, -priority, seq, created_at, 0, 0, 0, false, handler
  FROM tidewheel.task WHERE status = 'ready' ORDER BY seq;
