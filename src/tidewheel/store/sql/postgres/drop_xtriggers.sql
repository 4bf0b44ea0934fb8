-- Scheduler: calls that are to be made anew.
DELETE FROM tidewheel.xtrigger
 USING json_to_recordset(:xtriggers::json) AS gone (signature text)
 WHERE xtrigger.run = :run
   AND xtrigger.signature = ANY (ARRAY[gone.signature]);
