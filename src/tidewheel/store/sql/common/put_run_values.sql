-- Scheduler: what tasks returned, for those after them.
INSERT INTO tidewheel.run_values (run, point, name, submit, flows, body)
SELECT :run, point, name, submit, flows, body
  FROM json_to_recordset(:values::json) AS put (
           point bigint, name text, submit integer, flows text, body text)
 WHERE true
    ON CONFLICT (run, point, name, submit) DO UPDATE
   SET flows = excluded.flows, body = excluded.body;
