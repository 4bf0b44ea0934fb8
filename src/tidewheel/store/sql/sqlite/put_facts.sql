-- Scheduler: chains, absolute atoms, flows and the run itself.
INSERT INTO run_fact (run, kind, key, body)
SELECT :run, value ->> 'kind', value ->> 'key', value ->> 'body'
  FROM json_each(:facts)
 WHERE true
    ON CONFLICT (run, kind, key) DO UPDATE
   SET body = excluded.body;
