-- Verify T13: nothing is left of tasks that are gone.
SELECT CAST(orphan.task_seq AS TEXT), orphan.kind || ' of a task that is not there'
  FROM (SELECT task_seq, 'history' AS kind FROM tidewheel.history
        UNION SELECT task_seq, 'attempt' FROM tidewheel.attempt
        UNION SELECT task_seq, 'lease' FROM tidewheel.lease
        UNION SELECT task_seq, 'ready row' FROM tidewheel.ready) AS orphan
  LEFT JOIN tidewheel.task ON task.seq = orphan.task_seq
 WHERE task.seq IS NULL
 ORDER BY 1, 2;
