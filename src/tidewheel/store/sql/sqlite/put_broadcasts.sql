-- Scheduler: settings of tasks to come.
INSERT INTO broadcast (run, point, namespace, setting, value, place)
SELECT :run, value ->> 'point', value ->> 'namespace', value ->> 'setting',
       value ->> 'value', value ->> 'place'
  FROM json_each(:broadcasts)
 WHERE true
    ON CONFLICT (run, point, namespace, setting) DO UPDATE
   SET value = excluded.value, place = excluded.place;
