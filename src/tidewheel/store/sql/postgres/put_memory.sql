-- Scheduler: what it remembers of tasks, or has forgotten; a submit number is never given back.
INSERT INTO tidewheel.memory (run, point, name, submits, forgotten, body)
SELECT %(run)s, point, name, submits, forgotten, body
  FROM json_to_recordset(%(memories)s::json) AS put (
           point bigint, name text, submits bigint, forgotten boolean, body text)
    ON CONFLICT (run, point, name) DO UPDATE
   SET submits = greatest(memory.submits, excluded.submits), forgotten = excluded.forgotten,
       body = excluded.body;
