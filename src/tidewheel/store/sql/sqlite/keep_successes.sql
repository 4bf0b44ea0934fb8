-- Report: success ends leases; what is known of them is kept.
-- :ended is [[seq, started_ago, exit_status, metrics], …].
INSERT INTO attempt (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by,
                     exit_status, metrics)
SELECT lease.task_seq, lease.attempt, lease.owner, lease.claimed_at,
       coalesce(lease.started_at, max(lease.claimed_at, clock.now - (value ->> 1))), clock.now, 'succeed',
       value ->> 2, value ->> 3
  FROM jsonb_each(:ended) JOIN lease ON lease.task_seq = value ->> 0,
       (SELECT now_seconds() AS now) AS clock;
