-- Retention: the attempts of removed tasks.
DELETE FROM attempt WHERE task_seq IN (SELECT value FROM json_each(:seqs));
