-- Scheduler: settings of tasks to come.
INSERT INTO tidewheel.broadcast (run, point, namespace, setting, value, place)
SELECT :run, point, namespace, setting, value, place
  FROM json_to_recordset(:broadcasts::json) AS put (
           point text, namespace text, setting text, value text, place bigint)
 WHERE true
    ON CONFLICT (run, point, namespace, setting) DO UPDATE
   SET value = excluded.value, place = excluded.place;
