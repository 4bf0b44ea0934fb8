-- Claim by id, and on SQLite every claim: the leases of tasks that were just claimed.
WITH term AS (SELECT :lease_seconds::float8 AS lease_seconds)
{lease_of} tidewheel.task WHERE seq = ANY (:seqs::bigint[]);
