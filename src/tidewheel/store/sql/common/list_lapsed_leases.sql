-- Monitor: leases that ran out, and tasks that ran too long.
SELECT task.id
  FROM tidewheel.lease JOIN tidewheel.task ON task.seq = lease.task_seq
 WHERE (lease.deadline_at < (SELECT tidewheel.now_seconds()) AND lease.lease_seconds <= :watched_seconds)
    OR (CASE WHEN {task_is_prepared} THEN lease.started_at + :tidy_seconds::float8
             ELSE coalesce(lease.started_at, lease.claimed_at) END + task.timeout_seconds
            < (SELECT tidewheel.now_seconds()) AND task.status = 'running')
 ORDER BY lease.deadline_at, task.id LIMIT :count;
