-- Cancel, cascade: a cancelled task waits for nobody any more.
UPDATE dependency SET state = 'dead'
 WHERE state = 'open' AND child IN (SELECT value FROM json_each(:seqs));
