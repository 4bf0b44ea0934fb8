-- Scheduler: settings that were taken back.
DELETE FROM tidewheel.broadcast
 USING json_to_recordset(:broadcasts::json) AS gone (point text, namespace text, setting text)
 WHERE broadcast.run = :run
   AND broadcast.point = ANY (ARRAY[gone.point])
   AND broadcast.namespace = ANY (ARRAY[gone.namespace])
   AND broadcast.setting = ANY (ARRAY[gone.setting]);
