-- Verify T5: a lease exists exactly while a task is running or cancelling, for its owner.
SELECT task.id,
       CASE WHEN task.status IN ('waiting', 'ready') AND task.owner IS NOT NULL
            THEN task.status || ' but owned by ' || task.owner
            WHEN lease.task_seq IS NULL THEN task.status || ' without a lease'
            WHEN task.status NOT IN ('running', 'cancelling') THEN task.status || ' with a lease'
            ELSE 'the lease names another owner or attempt than the task' END
  FROM tidewheel.task LEFT JOIN tidewheel.lease ON lease.task_seq = task.seq
 WHERE (lease.task_seq IS NOT NULL) <> (task.status IN ('running', 'cancelling'))
    OR lease.owner <> task.owner OR lease.attempt <> task.attempt
    OR (task.status IN ('waiting', 'ready') AND task.owner IS NOT NULL)
 ORDER BY task.seq;
