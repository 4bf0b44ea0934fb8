-- Retention: runs completed long ago, which nobody can carry on, and deletions that were interrupted.
SELECT number FROM tidewheel.run
 WHERE status = 'deleted'
    OR (status = 'completed' AND ended_at < tidewheel.now_seconds() - %(retention_seconds)s AND deadline_at IS NULL)
 ORDER BY number LIMIT %(count)s;
