-- Retention: runs completed long ago, which nobody can carry on or waits for, and deletions that were interrupted.
-- One that is a task of a run goes with that.
SELECT number FROM tidewheel.run
 WHERE status = 'deleted'
    OR (status = 'completed' AND ended_at < tidewheel.now_seconds() - :retention_seconds AND deadline_at IS NULL
        AND parent IS NULL
        AND NOT EXISTS (SELECT 1 FROM tidewheel.run_need AS need JOIN tidewheel.run AS child ON child.number = need.run
                         WHERE need.parent = run.number AND child.batch = 0))
 ORDER BY number LIMIT :count;
