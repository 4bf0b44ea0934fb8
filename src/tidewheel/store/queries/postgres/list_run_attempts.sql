-- Looking: the attempts at the newest submissions of a run with what they asked for and used, newest first.
-- A submission that waits has an attempt that nobody has claimed yet.
WITH latest AS (
  SELECT seq, id, created_at, status, attempt, cpu, memory_bytes, gpu
    FROM tidewheel.task WHERE run = %(run)s ORDER BY seq DESC LIMIT %(count)s)
SELECT latest.seq, latest.id, latest.created_at, attempt.attempt, attempt.worker, attempt.claimed_at,
       attempt.started_at, attempt.ended_at, attempt.ended_by, attempt.exit_status,
       latest.cpu, latest.memory_bytes, latest.gpu,
       (SELECT max(used.memory_bytes) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = attempt.attempt),
       (SELECT avg(used.cpu_percent) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = attempt.attempt),
       (SELECT avg(used.gpu_percent) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = attempt.attempt),
       (SELECT max(used.gpu_memory_bytes) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = attempt.attempt)
  FROM latest JOIN tidewheel.attempt ON attempt.task_seq = latest.seq
UNION ALL
SELECT latest.seq, latest.id, latest.created_at, lease.attempt, lease.owner, lease.claimed_at,
       lease.started_at, NULL, NULL, NULL, latest.cpu, latest.memory_bytes, latest.gpu,
       (SELECT max(used.memory_bytes) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = lease.attempt),
       (SELECT avg(used.cpu_percent) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = lease.attempt),
       (SELECT avg(used.gpu_percent) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = lease.attempt),
       (SELECT max(used.gpu_memory_bytes) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.seq AND used.attempt = lease.attempt)
  FROM latest JOIN tidewheel.lease ON lease.task_seq = latest.seq
UNION ALL
SELECT latest.seq, latest.id, latest.created_at, latest.attempt + 1, NULL, NULL, NULL, NULL, NULL, NULL,
       latest.cpu, latest.memory_bytes, latest.gpu, NULL, NULL, NULL, NULL
  FROM latest WHERE latest.status IN ('waiting', 'ready')
 ORDER BY 1 DESC, 4 DESC;
