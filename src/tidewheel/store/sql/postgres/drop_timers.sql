-- Scheduler: timers that fired or are not wanted any more.
DELETE FROM tidewheel.timer
 USING json_to_recordset(:timers::json) AS gone (point bigint, name text, timer text)
 WHERE timer.run = :run
   AND timer.point = ANY (ARRAY[gone.point])
   AND timer.name = ANY (ARRAY[gone.name])
   AND timer.timer = ANY (ARRAY[gone.timer]);
