-- Attempts: those that are over, and the live one.
SELECT attempt, worker, claimed_at, started_at, ended_at, ended_by, exit_status, error_code,
       error_args, error_description, metrics
  FROM tidewheel.attempt WHERE task_seq = :seq
UNION ALL
SELECT attempt, owner, claimed_at, started_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM tidewheel.lease WHERE task_seq = :seq
 ORDER BY attempt;
