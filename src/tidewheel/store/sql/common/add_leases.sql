-- Claim: the worker's right to each task until the deadline.
INSERT INTO tidewheel.lease
       (task_seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, deadline_at)
SELECT seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, claimed_at + lease_seconds
  FROM json_to_recordset(:leases::json) AS taken (
           seq bigint, attempt integer, owner text, queue text, limit_key text,
           claimed_at float8, lease_seconds float8);
