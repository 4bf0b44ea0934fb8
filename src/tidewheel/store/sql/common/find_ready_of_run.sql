-- Scheduler: tasks of a run that can be claimed; all of them are in its queue.
SELECT task.seq
  FROM tidewheel.run JOIN tidewheel.ready ON ready.queue = run.queue
  JOIN tidewheel.task ON task.seq = ready.task_seq
 WHERE run.number = :run AND task.run = :run
 ORDER BY task.seq;
