-- Retention: runs that were completed long ago, and those whose deletion was interrupted. Others
-- may yet be carried on.
SELECT number FROM tidewheel.run
 WHERE status = 'deleted'
    OR (status = 'completed' AND ended_at < tidewheel.now_seconds() - %(retention_seconds)s AND deadline_at IS NULL)
 ORDER BY number LIMIT %(count)s;
