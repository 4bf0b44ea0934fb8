-- Looking: runs of one workflow, or all, newest first.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE (:workflow::text IS NULL OR workflow = :workflow::text) AND status <> 'deleted'
   AND (:before::bigint IS NULL OR number < :before::bigint)
 ORDER BY number DESC LIMIT :count;
