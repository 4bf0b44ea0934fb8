-- Retention: runs that ended long ago and nobody holds, and those whose deletion was interrupted.
SELECT number FROM run
 WHERE status = 'deleted'
    OR (ended_at < now_seconds() - :retention_seconds AND deadline_at IS NULL)
 ORDER BY number LIMIT :count;
