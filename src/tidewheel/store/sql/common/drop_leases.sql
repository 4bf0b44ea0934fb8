-- Cascade: these leases are over.
DELETE FROM tidewheel.lease WHERE task_seq = ANY (:seqs::bigint[]);
