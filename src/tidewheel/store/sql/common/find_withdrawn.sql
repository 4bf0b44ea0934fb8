-- Scheduler: ready tasks of a run that cannot be claimed since it was told to stop, or let go.
SELECT task.seq, task.queue, task.id
  FROM tidewheel.withdrawn JOIN tidewheel.task ON task.seq = withdrawn.task_seq
 WHERE withdrawn.run = :run AND task.status = 'ready'
 ORDER BY task.seq;
