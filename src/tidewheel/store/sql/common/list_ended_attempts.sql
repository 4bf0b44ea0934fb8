-- Statistics: the newest attempts that are over, with what they asked for and used.
SELECT task.queue, task.name, latest.ended_by,
       CASE WHEN latest.attempt = 1 THEN latest.claimed_at - task.created_at END AS queue_seconds,
       latest.ended_at - coalesce(latest.started_at, latest.claimed_at) AS run_seconds,
       task.cpu AS cpu_asked, task.memory_bytes AS memory_asked_bytes,
       (SELECT max(used.memory_bytes) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.task_seq AND used.attempt = latest.attempt) AS memory_used_bytes,
       (SELECT avg(used.cpu_percent) FROM tidewheel.usage AS used
         WHERE used.task_seq = latest.task_seq AND used.attempt = latest.attempt) AS cpu_used_percent,
       latest.task_seq, latest.attempt
  FROM (SELECT task_seq, attempt, claimed_at, started_at, ended_at, ended_by
          FROM tidewheel.attempt
         WHERE :before_seq::bigint IS NULL OR (task_seq, attempt) < (:before_seq::bigint, :before_attempt::bigint)
         ORDER BY task_seq DESC, attempt DESC LIMIT :count) AS latest
  JOIN tidewheel.task AS task ON task.seq = latest.task_seq
 ORDER BY latest.task_seq DESC, latest.attempt DESC;
