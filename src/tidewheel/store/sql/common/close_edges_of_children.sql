-- Cancel, cascade: a cancelled task waits for nobody any more.
UPDATE tidewheel.dependency SET state = 'dead'
 WHERE state = 'open' AND child = ANY (:seqs::bigint[]);
