-- Claim by id, and on SQLite every claim: the leases of tasks that were just claimed.
INSERT INTO tidewheel.lease
       (task_seq, {lease_terms}, claimed_at, lease_seconds, deadline_at)
SELECT seq, {lease_terms}, updated_at, term.lease_seconds, updated_at + term.lease_seconds
  FROM (SELECT :lease_seconds::float8 AS lease_seconds) AS term, tidewheel.task
 WHERE seq = ANY (:seqs::bigint[]);
