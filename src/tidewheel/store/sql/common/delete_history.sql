-- Retention: the history of removed tasks.
DELETE FROM tidewheel.history WHERE task_seq = ANY (:seqs::bigint[]);
