-- Report: the job says that it runs, or ran some seconds ago; the first time counts.
UPDATE tidewheel.lease
   SET started_at = CASE WHEN claimed_at > tidewheel.now_seconds() - started.ago THEN claimed_at
                         ELSE tidewheel.now_seconds() - started.ago END
  FROM json_to_recordset(:leases::json) AS started (seq bigint, ago double precision)
 WHERE task_seq = ANY (ARRAY[started.seq]) AND started_at IS NULL;
