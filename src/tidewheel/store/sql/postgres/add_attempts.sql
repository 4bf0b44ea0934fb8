-- Cascade: keep what is known of a lease that is over. Its end stands in history.
INSERT INTO tidewheel.attempt (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by,
                               exit_status, error_code, error_args, error_description, metrics,
                               claim_seq)
SELECT lease.task_seq, lease.attempt, lease.owner, lease.claimed_at, lease.started_at,
       tidewheel.now_seconds(), change.signal, change.exit_status, change.error_code,
       change.error_args, change.error_description, change.metrics, lease.claim_seq
  FROM json_to_recordset(:changes::json) AS change (
           seq bigint, signal text, exit_status integer, error_code text, error_args text,
           error_description text, metrics text)
  JOIN tidewheel.lease ON lease.task_seq = ANY (ARRAY[change.seq]);
