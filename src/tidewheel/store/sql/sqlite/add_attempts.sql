-- Cascade: keep what is known of a lease that is over.
INSERT INTO attempt (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by,
                     exit_status, error_code, error_args, error_description, metrics)
SELECT lease.task_seq, lease.attempt, lease.owner, lease.claimed_at, lease.started_at, now_seconds(),
       value ->> 'signal', value ->> 'exit_status', value ->> 'error_code',
       value ->> 'error_args', value ->> 'error_description', value ->> 'metrics'
  FROM json_each(:changes) JOIN lease ON lease.task_seq = value ->> 'seq';
