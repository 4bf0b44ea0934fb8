-- Retention: runs that ended long ago and nobody holds, and those whose deletion was interrupted.
SELECT number FROM tidewheel.run
 WHERE status = 'deleted'
    OR (ended_at < tidewheel.now_seconds() - %(retention_seconds)s AND deadline_at IS NULL)
 ORDER BY number LIMIT %(count)s;
