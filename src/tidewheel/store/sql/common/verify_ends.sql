-- Verify T2: a task ends once at most.
SELECT task.id, 'it ended ' || count(*) || ' times'
  FROM tidewheel.history JOIN tidewheel.task ON task.seq = history.task_seq
 WHERE history.to_status IN ('succeeded', 'failed', 'cancelled')
 GROUP BY task.id
HAVING count(*) > 1
 ORDER BY task.id;
