-- Looking: submissions of a run by their ids, newest first.
-- The plus leaves one way to a task: by its id.
SELECT task.id, task.seq, task.status, task.attempt, task.created_at,
       coalesce(lease.started_at, attempt.started_at),
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END,
       attempt.exit_status, attempt.error_description, task.owner
  FROM tidewheel.task
  LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.id = ANY (:ids::text[]) AND +task.run = :run
 ORDER BY task.seq DESC;
