-- Claim: the worker's right to each task just claimed, until the deadline.
INSERT INTO lease (task_seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, deadline_at)
SELECT seq, attempt, owner, queue, limit_key, updated_at, :lease_seconds, updated_at + :lease_seconds
  FROM task WHERE seq IN (SELECT value FROM json_each(:seqs));
