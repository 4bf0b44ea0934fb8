-- Verify T1: history is one unbroken path that ends at the task's status.
SELECT task.id,
       CASE WHEN step.from_status IS DISTINCT FROM step.earlier
            THEN 'history jumps from ' || coalesce(step.earlier, 'nothing') || ' to '
                 || coalesce(step.from_status, 'nothing')
            ELSE 'status is ' || task.status || ', history says ' || step.to_status END
  FROM (SELECT task_seq, seq, from_status, to_status,
               lag(to_status) OVER life AS earlier,
               lead(seq) OVER life AS later
          FROM tidewheel.step
        WINDOW life AS (PARTITION BY task_seq ORDER BY seq)) AS step
  JOIN tidewheel.task ON task.seq = step.task_seq
 WHERE step.from_status IS DISTINCT FROM step.earlier
    OR (step.later IS NULL AND step.to_status <> task.status)
UNION ALL
SELECT task.id, 'there is no history'
  FROM tidewheel.task
 WHERE NOT EXISTS (SELECT 1 FROM tidewheel.step AS told WHERE told.task_seq = task.seq)
 ORDER BY 1, 2;
