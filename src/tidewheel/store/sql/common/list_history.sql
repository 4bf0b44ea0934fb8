-- History: a page of a task's life, oldest first.
SELECT seq, at, signal, from_status, to_status, attempt, worker, progress
  FROM tidewheel.step
 WHERE task_seq = :seq AND seq > :after
 ORDER BY seq LIMIT :count;
