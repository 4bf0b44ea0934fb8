-- Monitor: leased tasks that nobody else is working on at this moment.
SELECT task.seq, task.id, task.queue, task.status, task.attempt, task.failures, task.lapses,
       task.max_retries, task.retry, task.max_lapses, task.timeout_seconds, task.armed, task.executes,
       task.graph, task.run, task.owner, lease.deadline_at, lease.lease_seconds, lease.claimed_at,
       lease.started_at, lease.progress, lease.messages
  FROM tidewheel.task JOIN tidewheel.lease ON lease.task_seq = ANY (ARRAY[task.seq])
 WHERE task.id = ANY (:ids::text[])
 ORDER BY task.seq
   FOR UPDATE OF task, lease SKIP LOCKED;
