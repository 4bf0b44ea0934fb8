-- Scheduler: settings of tasks to come.
INSERT INTO tidewheel.broadcast (run, point, namespace, setting, value)
SELECT %(run)s, point, namespace, setting, value
  FROM json_to_recordset(%(broadcasts)s::json) AS put (
           point text, namespace text, setting text, value text)
    ON CONFLICT (run, point, namespace, setting) DO UPDATE
   SET value = excluded.value;
