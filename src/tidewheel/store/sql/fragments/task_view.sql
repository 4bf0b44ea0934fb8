-- Looking: tasks as people see them; which of them is said behind it.
SELECT task.seq, {task.task_columns},
       CASE WHEN task.status IN ('waiting', 'ready') THEN 0.0
            ELSE coalesce(lease.progress, task.progress) END AS progress,
       task.attempt, task.failures, task.lapses,
       CASE WHEN task.status IN ('waiting', 'ready') AND task.due_at > tidewheel.now_seconds() THEN task.due_at END
           AS due_at,
       task.created_at,
       CASE WHEN lease.deadline_at - lease.lease_seconds > task.updated_at
            THEN lease.deadline_at - lease.lease_seconds ELSE task.updated_at END
           AS updated_at,
       task.owner, lease.deadline_at, attempt.error_code, attempt.error_args,
       attempt.error_description,
       (SELECT count(*) FROM tidewheel.dependency
         WHERE dependency.child = task.seq AND dependency.state = 'open') AS open_needs,
       task.status = 'ready' AND EXISTS (
           SELECT 1 FROM tidewheel.withdrawn
            WHERE withdrawn.run = task.run AND withdrawn.task_seq = task.seq) AS withdrawn
  FROM tidewheel.task
  LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = task.seq AND attempt.attempt = task.attempt
