-- Everybody who decides: tasks stand still from here on, locked in one order.
SELECT seq, graph FROM task
 WHERE id IN (SELECT value FROM json_each(:ids))
 ORDER BY seq;
