-- Scheduler: chains, absolute atoms, flows and the run itself.
INSERT INTO tidewheel.run_fact (run, kind, key, body)
SELECT :run, kind, key, body
  FROM json_to_recordset(:facts::json) AS put (kind text, key text, body text)
    ON CONFLICT (run, kind, key) DO UPDATE
   SET body = excluded.body;
