-- Everybody who decides: the facts about a task and its lease.
task.seq, task.id, task.queue, task.status, task.attempt, task.failures, task.lapses,
       task.max_retries, task.retry, task.max_lapses, task.timeout_seconds, task.armed, task.executes,
       task.graph, task.run, task.owner, lease.deadline_at, lease.lease_seconds, lease.claimed_at,
       lease.started_at, lease.progress, lease.messages, {task_is_prepared} AS is_prepared
