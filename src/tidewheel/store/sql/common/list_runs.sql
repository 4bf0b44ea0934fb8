-- Looking: runs of one workflow, or all, newest first; those that are tasks of a run only if asked for.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE (:workflow::text IS NULL OR workflow = :workflow::text) AND status <> 'deleted'
   AND (:nested::boolean OR CASE WHEN :parent::bigint IS NULL THEN parent IS NULL ELSE parent = :parent::bigint END)
   AND (:before::bigint IS NULL OR number < :before::bigint)
 ORDER BY number DESC LIMIT :count;
