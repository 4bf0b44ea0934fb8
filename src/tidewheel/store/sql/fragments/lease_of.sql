-- Claim: the worker's right to each task just claimed, until the deadline; `term` has its length, and where the tasks are is said behind it.
INSERT INTO tidewheel.lease
       (task_seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, deadline_at)
SELECT seq, attempt, owner, queue, limit_key, updated_at, term.lease_seconds, updated_at + term.lease_seconds
  FROM term,
