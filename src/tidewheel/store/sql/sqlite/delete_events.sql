-- Scheduler: what it has dealt with.
DELETE FROM event WHERE seq IN (SELECT value FROM json_each(:seqs)) AND run = :run;
