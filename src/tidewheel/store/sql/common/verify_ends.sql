-- Verify T2: a task ends once at most.
SELECT task.id, 'it ended ' || count(*) || ' times'
  FROM tidewheel.step JOIN tidewheel.task ON task.seq = step.task_seq
 WHERE step.to_status IN ('succeeded', 'failed', 'cancelled')
 GROUP BY task.id
HAVING count(*) > 1
 ORDER BY task.id;
