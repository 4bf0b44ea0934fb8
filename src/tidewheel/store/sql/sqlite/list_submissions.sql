-- Looking: the submissions of a run, newest first; code of its definition is none.
-- An id is RUN/POINT/NAME/NUMBER; its first part, with the slash, is skipped.
SELECT task.id AS task_id, task.seq, task.status, task.attempt, task.created_at AS submitted_at,
       coalesce(lease.started_at, attempt.started_at) AS started_at,
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END AS ended_at,
       attempt.exit_status, attempt.error_description AS error, task.owner AS worker
  FROM task
  LEFT JOIN lease ON lease.task_seq = task.seq
  LEFT JOIN attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.run = :run AND {is_job}
   AND (:point IS NULL OR substr(task.id, :skip + 1, length(:point) + 1) = :point || '/')
   AND (:name IS NULL OR instr(substr(task.id, :skip + 1), '/' || :name || '/') > 0)
   AND (:before IS NULL OR task.seq < :before)
 ORDER BY task.seq DESC LIMIT :count;
