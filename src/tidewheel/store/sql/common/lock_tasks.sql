-- Everybody who decides: tasks stand still from here on, locked in one order.
SELECT seq, graph FROM tidewheel.task
 WHERE id = ANY (:ids::text[])
 ORDER BY seq
   FOR UPDATE;
