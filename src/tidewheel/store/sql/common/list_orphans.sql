-- Worker: every lease held by workers of one host and boot.
SELECT lease.owner, worker.host, worker.boot_id, worker.pid, worker.process_started, lease.messages,
       lease.lease_seconds, coalesce(queue.fence_kill, false) AS fence_kill,
       EXISTS (SELECT 1 FROM tidewheel.queue_limit WHERE queue_limit.queue = task.queue) AS limited,
       {task.claimed_columns},
       tidewheel.now_seconds() AS now
  FROM tidewheel.worker
  JOIN tidewheel.lease ON lease.owner = 'worker-' || worker.number
  JOIN tidewheel.task ON task.seq = lease.task_seq
  LEFT JOIN tidewheel.queue ON queue.name = lease.queue
 WHERE worker.host = :host AND worker.boot_id = :boot_id
 ORDER BY task.seq;
