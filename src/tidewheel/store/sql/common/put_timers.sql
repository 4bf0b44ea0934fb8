-- Scheduler: what is to happen at a time.
INSERT INTO tidewheel.timer (run, point, name, timer, at)
SELECT :run, point, name, timer, at
  FROM json_to_recordset(:timers::json) AS put (
           point bigint, name text, timer text, at float8)
 WHERE true
    ON CONFLICT (run, point, name, timer) DO UPDATE
   SET at = excluded.at;
