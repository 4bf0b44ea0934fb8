-- Retention: runs that were completed long ago, and those whose deletion was interrupted. Others
-- may yet be carried on.
SELECT number FROM run
 WHERE status = 'deleted'
    OR (status = 'completed' AND ended_at < now_seconds() - :retention_seconds AND deadline_at IS NULL)
 ORDER BY number LIMIT :count;
