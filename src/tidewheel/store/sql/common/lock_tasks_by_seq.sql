-- Cascade: children stand still from here on, locked in one order.
SELECT seq FROM tidewheel.task
 WHERE seq = ANY (:seqs::bigint[])
 ORDER BY seq
   FOR UPDATE;
