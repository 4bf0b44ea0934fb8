-- Scheduler: what is to happen at a time.
INSERT INTO tidewheel.timer (run, point, name, timer, at)
SELECT %(run)s, point, name, timer, at
  FROM json_to_recordset(%(timers)s::json) AS put (
           point bigint, name text, timer text, at float8)
    ON CONFLICT (run, point, name, timer) DO UPDATE
   SET at = excluded.at;
