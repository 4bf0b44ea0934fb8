-- Scheduler: what is to happen at a time.
INSERT INTO timer (run, point, name, timer, at)
SELECT :run, value ->> 'point', value ->> 'name', value ->> 'timer', value ->> 'at'
  FROM json_each(:timers)
 WHERE true
    ON CONFLICT (run, point, name, timer) DO UPDATE
   SET at = excluded.at;
