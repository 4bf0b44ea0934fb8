-- Scheduler: what it remembers of one task, or has forgotten; a submit number is never given back.
INSERT INTO memory (run, point, name, submits, forgotten, body)
VALUES (:run, :point, :name, :submits, :forgotten, :body)
    ON CONFLICT (run, point, name) DO UPDATE
   SET submits = max(submits, excluded.submits), forgotten = excluded.forgotten,
       body = excluded.body;
