-- Retention: ended long ago, and nothing live depends on them. What belongs to a run goes with the run.
SELECT history.task_seq
  FROM history JOIN task ON task.seq = history.task_seq
 WHERE history.to_status IN ('succeeded', 'failed', 'cancelled')
   AND history.at < (SELECT now_seconds()) - :retention_seconds
   AND {may_expire}
 ORDER BY history.at, history.task_seq LIMIT :count;
