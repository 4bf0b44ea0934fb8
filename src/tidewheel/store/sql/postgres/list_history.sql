-- History: a page of a task's life, oldest first.
SELECT seq, at, signal, from_status, to_status, attempt, worker, progress
  FROM tidewheel.history
 WHERE task_seq = %(seq)s AND seq > %(after)s
 ORDER BY seq LIMIT %(count)s;
