-- Scheduler: tasks of a run that can be claimed, all in its queue; but for code (see is_job).
SELECT task.seq
  FROM tidewheel.run JOIN tidewheel.ready ON ready.queue = run.queue
  JOIN tidewheel.task ON task.seq = ready.task_seq
 WHERE run.number = :run AND task.run = :run AND {is_job}
 ORDER BY task.seq;
