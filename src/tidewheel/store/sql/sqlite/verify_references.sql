-- Verify T13: nothing is left of tasks that are gone.
SELECT CAST(orphan.task_seq AS TEXT), orphan.kind || ' of a task that is not there'
  FROM (SELECT task_seq, 'history' AS kind FROM history
        UNION SELECT task_seq, 'attempt' FROM attempt
        UNION SELECT task_seq, 'lease' FROM lease
        UNION SELECT task_seq, 'ready row' FROM ready) AS orphan
  LEFT JOIN task ON task.seq = orphan.task_seq
 WHERE task.seq IS NULL
 ORDER BY 1, 2;
