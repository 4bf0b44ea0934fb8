-- Looking: submissions of a run by their ids, newest first.
-- The plus leaves one way to a task: by its id.
SELECT task.id AS task_id, task.seq, task.status, task.attempt, task.created_at AS submitted_at,
       coalesce(lease.started_at, attempt.started_at) AS started_at,
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END AS ended_at,
       attempt.exit_status, attempt.error_description AS error, task.owner AS worker
  FROM tidewheel.task
  LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.id = ANY (:ids::text[]) AND +task.run = :run
 ORDER BY task.seq DESC;
