-- Report: the job says that it runs; the first time counts.
UPDATE tidewheel.lease SET started_at = tidewheel.now_seconds()
  FROM json_to_recordset(:leases::json) AS started (seq bigint)
 WHERE task_seq = ANY (ARRAY[started.seq]) AND started_at IS NULL;
