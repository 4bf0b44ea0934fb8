-- Worker: every lease held by workers of one host and boot.
SELECT lease.owner, worker.pid, worker.process_started, lease.messages, lease.lease_seconds,
       coalesce(queue.fence_kill, false) AS fence_kill,
       task.seq, task.id, task.queue, task.name, task.attempt, task.spec, task.command, task.handler,
       task.priority, task.timeout_seconds, task.max_termination_seconds, task.cpu,
       task.memory_bytes, task.gpu, task.labels, task.nodes, task.exclusive, task.buffer_bytes,
       task.limit_key, task.run,
       tidewheel.now_seconds() AS now
  FROM tidewheel.worker
  JOIN tidewheel.lease ON lease.owner = 'worker-' || worker.number
  JOIN tidewheel.task ON task.seq = lease.task_seq
  LEFT JOIN tidewheel.queue ON queue.name = lease.queue
 WHERE worker.host = :host AND worker.boot_id = :boot_id
 ORDER BY task.seq;
