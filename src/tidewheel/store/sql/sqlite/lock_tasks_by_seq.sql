-- Cascade: children stand still from here on, locked in one order.
SELECT seq FROM task
 WHERE seq IN (SELECT value FROM json_each(:seqs))
 ORDER BY seq;
