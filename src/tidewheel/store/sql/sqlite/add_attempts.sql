-- Cascade: keep what is known of a lease that is over.
INSERT INTO attempt (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by, exit_status, error_code,
                     error_args, error_description, metrics)
SELECT lease.task_seq, lease.attempt, lease.owner, lease.claimed_at, lease.started_at,
       now_seconds(), change.signal, change.exit_status, change.error_code,
       change.error_args, change.error_description, change.metrics
  FROM json_to_recordset(:changes::json) AS change (
           seq bigint, signal text, exit_status integer, error_code text, error_args text,
           error_description text, metrics text)
  JOIN lease ON lease.task_seq = change.seq;
