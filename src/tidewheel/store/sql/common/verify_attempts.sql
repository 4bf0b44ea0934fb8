-- Verify T3: attempts are numbered 1, 2, 3 … by claims, without gap or repeat.
SELECT task.id, 'attempt is ' || task.attempt || ' after ' || count(history.seq) || ' claims'
  FROM tidewheel.task LEFT JOIN tidewheel.history ON history.task_seq = task.seq AND history.signal = 'claim'
 GROUP BY task.seq, task.id, task.attempt
HAVING count(history.seq) <> task.attempt OR count(DISTINCT history.attempt) <> task.attempt
    OR coalesce(max(history.attempt), 0) <> task.attempt
 ORDER BY task.seq;
