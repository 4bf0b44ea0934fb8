-- Scheduler: what it remembers of tasks, or has forgotten; a submit number is never given back.
INSERT INTO tidewheel.memory (run, point, name, submits, forgotten, body)
SELECT :run, point, name, submits, forgotten, body
  FROM json_to_recordset(:memories::json) AS put (
           point bigint, name text, submits bigint, forgotten boolean, body text)
    ON CONFLICT (run, point, name) DO UPDATE
   SET submits = CASE WHEN memory.submits > excluded.submits THEN memory.submits
                      ELSE excluded.submits END, forgotten = excluded.forgotten,
       body = excluded.body;
