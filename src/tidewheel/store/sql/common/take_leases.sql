-- Claim by id, and on SQLite every claim: the leases of tasks that were just claimed.
{lease_of} tidewheel.task WHERE seq = ANY (:seqs::bigint[]);
