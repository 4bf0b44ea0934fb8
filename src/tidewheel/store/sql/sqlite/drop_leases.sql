-- Cascade: these leases are over.
DELETE FROM lease WHERE task_seq IN (SELECT value FROM json_each(:seqs));
