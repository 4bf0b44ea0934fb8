-- Scheduler: tasks of a run that can be claimed, all in its queue; but for code, which has a tag.
SELECT task.seq
  FROM tidewheel.run JOIN tidewheel.ready ON ready.queue = run.queue
  JOIN tidewheel.task ON task.seq = ready.task_seq
 WHERE run.number = :run AND task.run = :run AND task.tag IS NULL
 ORDER BY task.seq;
