-- Worker: which of its jobs it was asked to end.
SELECT task.id, lease.attempt
  FROM tidewheel.lease JOIN tidewheel.task ON task.seq = lease.task_seq
 WHERE lease.owner = :worker AND task.status = 'cancelling'
 ORDER BY task.seq;
