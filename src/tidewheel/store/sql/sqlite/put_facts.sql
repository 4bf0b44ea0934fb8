-- Scheduler: one chain, absolute atom or flow, or the run itself.
INSERT INTO run_fact (run, kind, key, body) VALUES (:run, :kind, :key, :body)
    ON CONFLICT (run, kind, key) DO UPDATE
   SET body = excluded.body;
