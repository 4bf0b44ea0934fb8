-- Retention: runs completed long ago, which nobody can carry on, and deletions that were interrupted.
SELECT number FROM run
 WHERE status = 'deleted'
    OR (status = 'completed' AND ended_at < now_seconds() - :retention_seconds AND deadline_at IS NULL)
 ORDER BY number LIMIT :count;
