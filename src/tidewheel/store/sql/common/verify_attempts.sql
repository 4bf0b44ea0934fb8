-- Verify T3: attempts are numbered 1, 2, 3 … by claims, without gap or repeat.
SELECT task.id, 'attempt is ' || task.attempt || ' after ' || count(step.seq) || ' claims'
  FROM tidewheel.task LEFT JOIN tidewheel.step ON step.task_seq = task.seq AND step.signal = 'claim'
 GROUP BY task.seq, task.id, task.attempt
HAVING count(step.seq) <> task.attempt OR count(DISTINCT step.attempt) <> task.attempt
    OR coalesce(max(step.attempt), 0) <> task.attempt
 ORDER BY task.seq;
