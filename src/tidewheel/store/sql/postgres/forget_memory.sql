-- Scheduler: what it has forgotten of tasks, and is kept as it is stored.
UPDATE tidewheel.memory SET forgotten = true
  FROM json_to_recordset(:tasks::json) AS gone (point bigint, name text)
 WHERE memory.run = :run
   AND memory.point = ANY (ARRAY[gone.point])
   AND memory.name = ANY (ARRAY[gone.name]);
