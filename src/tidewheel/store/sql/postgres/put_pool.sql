-- Scheduler: tasks of the pool as they are now.
INSERT INTO tidewheel.pool (run, point, name, stage, submit, flows, body)
SELECT :run, point, name, stage, submit, flows, body
  FROM json_to_recordset(:tasks::json) AS put (
           point bigint, name text, stage bigint, submit bigint, flows text, body text)
    ON CONFLICT (run, point, name) DO UPDATE
   SET stage = excluded.stage, submit = excluded.submit, flows = excluded.flows,
       body = excluded.body;
