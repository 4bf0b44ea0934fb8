-- Cascade: which of these tasks still wait for something.
SELECT DISTINCT child FROM tidewheel.dependency
 WHERE state = 'open' AND child = ANY (:seqs::bigint[]);
