-- Retention: ended long ago, and nothing live depends on them.
SELECT history.task_seq
  FROM history
 WHERE history.to_status IN ('succeeded', 'failed', 'cancelled')
   AND history.at < (SELECT now_seconds()) - :retention_seconds
   AND NOT EXISTS (SELECT 1 FROM dependency JOIN task AS child ON child.seq = dependency.child
                    WHERE dependency.parent = history.task_seq
                      AND child.status NOT IN ('succeeded', 'failed', 'cancelled'))
 ORDER BY history.at, history.task_seq LIMIT :count;
