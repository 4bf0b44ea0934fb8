-- Retention: ended long ago, and nothing live depends on them. What belongs to a run goes with the run.
SELECT history.task_seq
  FROM tidewheel.history JOIN tidewheel.task ON task.seq = history.task_seq
 WHERE history.to_status IN ('succeeded', 'failed', 'cancelled')
   AND history.at < (SELECT tidewheel.now_seconds()) - :retention_seconds
   AND task.run IS NULL
   AND NOT EXISTS (SELECT 1 FROM tidewheel.dependency JOIN tidewheel.task AS child ON child.seq = dependency.child
                    WHERE dependency.parent = history.task_seq
                      AND child.status NOT IN ('succeeded', 'failed', 'cancelled'))
 ORDER BY history.at, history.task_seq LIMIT :count;
