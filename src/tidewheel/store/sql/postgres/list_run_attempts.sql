-- Looking: the attempts at the newest submissions of a run with what they asked for and used, newest first.
-- A submission that waits has an attempt that nobody has claimed yet.
WITH latest AS (
  SELECT seq, id, created_at, status, attempt, cpu, memory_bytes, gpu
    FROM tidewheel.task WHERE run = :run AND {is_job} ORDER BY seq DESC LIMIT :count),
tried AS (
  SELECT past.task_seq, past.attempt, past.worker, past.claimed_at, past.started_at, past.ended_at, past.ended_by, past.exit_status
    FROM latest JOIN tidewheel.attempt AS past ON past.task_seq = latest.seq
  UNION ALL
  SELECT lease.task_seq, lease.attempt, lease.owner, lease.claimed_at, lease.started_at, NULL, NULL, NULL
    FROM latest JOIN tidewheel.lease ON lease.task_seq = latest.seq
  UNION ALL
  SELECT seq, attempt + 1, NULL, NULL, NULL, NULL, NULL, NULL
    FROM latest WHERE status IN ('waiting', 'ready')),
used AS (
  SELECT usage.task_seq, usage.attempt, max(usage.memory_bytes) AS memory_bytes, avg(usage.cpu_percent) AS cpu_percent,
         avg(usage.gpu_percent) AS gpu_percent, max(usage.gpu_memory_bytes) AS gpu_memory_bytes
    FROM latest JOIN tidewheel.usage ON usage.task_seq = latest.seq
   GROUP BY usage.task_seq, usage.attempt)
SELECT latest.id AS task_id, latest.created_at AS submitted_at, tried.attempt, tried.worker, tried.claimed_at,
       tried.started_at, tried.ended_at, tried.ended_by, tried.exit_status,
       latest.cpu AS cpu_asked, latest.memory_bytes AS memory_asked_bytes, latest.gpu AS gpu_asked,
       used.memory_bytes AS memory_used_bytes, used.cpu_percent AS cpu_used_percent,
       used.gpu_percent AS gpu_used_percent, used.gpu_memory_bytes AS gpu_memory_used_bytes
  FROM latest JOIN tried ON tried.task_seq = latest.seq
  LEFT JOIN used ON used.task_seq = tried.task_seq AND used.attempt = tried.attempt
 ORDER BY latest.seq DESC, tried.attempt DESC;
