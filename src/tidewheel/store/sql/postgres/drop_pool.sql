-- Scheduler: tasks that left the pool.
DELETE FROM tidewheel.pool
 USING json_to_recordset(:tasks::json) AS gone (point bigint, name text)
 WHERE pool.run = :run
   AND pool.point = ANY (ARRAY[gone.point])
   AND pool.name = ANY (ARRAY[gone.name]);
