-- Scheduler: one task of the pool as it is now.
INSERT INTO pool (run, point, name, stage, submit, flows, body)
VALUES (:run, :point, :name, :stage, :submit, :flows, :body)
    ON CONFLICT (run, point, name) DO UPDATE
   SET stage = excluded.stage, submit = excluded.submit, flows = excluded.flows,
       body = excluded.body;
