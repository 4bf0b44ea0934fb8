-- Scheduler: tasks of the pool as they are now.
INSERT INTO pool (run, point, name, stage, submit, flows, body)
SELECT :run, value ->> 'point', value ->> 'name', value ->> 'stage', value ->> 'submit',
       value ->> 'flows', value ->> 'body'
  FROM json_each(:tasks)
 WHERE true
    ON CONFLICT (run, point, name) DO UPDATE
   SET stage = excluded.stage, submit = excluded.submit, flows = excluded.flows,
       body = excluded.body;
