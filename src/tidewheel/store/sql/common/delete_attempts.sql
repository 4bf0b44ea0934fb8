-- Retention: the attempts of removed tasks.
DELETE FROM tidewheel.attempt WHERE task_seq = ANY (:seqs::bigint[]);
