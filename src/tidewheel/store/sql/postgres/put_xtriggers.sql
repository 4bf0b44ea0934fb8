-- Scheduler: calls that were satisfied.
INSERT INTO tidewheel.xtrigger (run, signature, result)
SELECT %(run)s, signature, result
  FROM json_to_recordset(%(xtriggers)s::json) AS put (signature text, result text)
    ON CONFLICT (run, signature) DO UPDATE
   SET result = excluded.result;
