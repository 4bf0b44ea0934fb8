-- Looking: the submissions of a run, newest first; code of its definition is none.
-- An id is RUN/POINT/NAME/NUMBER; its first part, with the slash, is skipped.
SELECT task.id AS task_id, task.seq, task.status, task.attempt, task.created_at AS submitted_at,
       coalesce(lease.started_at, attempt.started_at) AS started_at,
       CASE WHEN task.status IN ('succeeded', 'failed', 'cancelled')
            THEN coalesce(attempt.ended_at, task.updated_at) END AS ended_at,
       attempt.exit_status, attempt.error_description AS error, task.owner AS worker
  FROM tidewheel.task
  LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
 WHERE task.run = :run AND {is_job}
   AND (:point::text IS NULL OR starts_with(substr(task.id, :skip::integer + 1), :point::text || '/'))
   AND (:name::text IS NULL OR strpos(substr(task.id, :skip::integer + 1), '/' || :name::text || '/') > 0)
   AND (:before::bigint IS NULL OR task.seq < :before)
 ORDER BY task.seq DESC LIMIT :count;
