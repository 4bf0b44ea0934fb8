-- Verify P22: of a run that was let go nothing can be claimed, but for code (see is_job).
SELECT task.id, 'can be claimed, although its run is ' || run.status
  FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
  JOIN tidewheel.run ON run.number = task.run
 WHERE run.status IN ({withdrawn_statuses}) AND {is_job}
 ORDER BY task.seq;
