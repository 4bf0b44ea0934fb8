-- Looking: submissions of a run by their ids, newest first.
-- The plus leaves one way to a task: by its id.
SELECT task.id, task.seq, task.status, task.attempt, task.created_at,
       coalesce(lease.started_at, attempt.started_at),
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END,
       attempt.exit_status, attempt.error_description, task.owner
  FROM task
  LEFT JOIN lease ON lease.task_seq = task.seq
  LEFT JOIN attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.id IN (SELECT value FROM json_each(:ids)) AND +task.run = :run
 ORDER BY task.seq DESC;
