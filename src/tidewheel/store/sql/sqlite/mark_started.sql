-- Report: the job says that it runs; the first time counts.
UPDATE lease SET started_at = now_seconds()
  FROM json_each(:leases)
 WHERE task_seq = value ->> 'seq' AND started_at IS NULL;
