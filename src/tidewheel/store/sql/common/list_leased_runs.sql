-- Blocks: which of these runs have a task that a worker has. There are few leases; the plus keeps to them.
SELECT DISTINCT task.run
  FROM tidewheel.lease AS lease JOIN tidewheel.task AS task ON task.seq = lease.task_seq
 WHERE +task.run = ANY (:runs::bigint[]);
