-- Cascade: which of these tasks still wait for something.
SELECT DISTINCT child FROM dependency
 WHERE state = 'open' AND child IN (SELECT value FROM json_each(:seqs));
