-- Scheduler: calls that were satisfied.
INSERT INTO tidewheel.xtrigger (run, signature, result)
SELECT :run, signature, result
  FROM json_to_recordset(:xtriggers::json) AS put (signature text, result text)
 WHERE true
    ON CONFLICT (run, signature) DO UPDATE
   SET result = excluded.result;
