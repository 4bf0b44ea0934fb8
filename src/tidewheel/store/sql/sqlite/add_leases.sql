-- Claim: the worker's right to each task until the deadline.
INSERT INTO lease (task_seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, deadline_at)
SELECT value ->> 'seq', value ->> 'attempt', value ->> 'owner', value ->> 'queue',
       value ->> 'limit_key', value ->> 'claimed_at', value ->> 'lease_seconds',
       (value ->> 'claimed_at') + (value ->> 'lease_seconds')
  FROM json_each(:leases);
