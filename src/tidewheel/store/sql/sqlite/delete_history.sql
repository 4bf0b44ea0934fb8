-- Retention: the history of removed tasks.
DELETE FROM history WHERE task_seq IN (SELECT value FROM json_each(:seqs));
