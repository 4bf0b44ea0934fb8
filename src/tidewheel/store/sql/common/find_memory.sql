-- Scheduler: what is known of some tasks, forgotten or not.
SELECT memory.point, memory.name, memory.submits, memory.body
  FROM json_to_recordset(:tasks::json) AS asked (point bigint, name text)
 CROSS JOIN tidewheel.memory
 WHERE memory.run = :run
   AND memory.point = ANY (ARRAY[asked.point])
   AND memory.name = ANY (ARRAY[asked.name]);
