-- Looking: submissions of a run by their ids, newest first.
SELECT task.id, task.seq, task.status, task.attempt, task.created_at,
       coalesce(lease.started_at, attempt.started_at),
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END,
       attempt.exit_status, attempt.error_description, task.owner
  FROM tidewheel.task
  LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.id = ANY (%(ids)s::text[]) AND task.run = %(run)s
 ORDER BY task.seq DESC;
