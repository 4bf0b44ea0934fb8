-- Looking: runs by their numbers.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE number = ANY (:runs::bigint[]) AND status <> 'deleted';
