-- Scheduler: calls that were satisfied.
INSERT INTO xtrigger (run, signature, result)
SELECT :run, value ->> 'signature', value ->> 'result'
  FROM json_each(:xtriggers)
 WHERE true
    ON CONFLICT (run, signature) DO UPDATE
   SET result = excluded.result;
