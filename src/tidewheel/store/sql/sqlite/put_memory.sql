-- Scheduler: what it remembers of tasks, or has forgotten; a submit number is never given back.
INSERT INTO memory (run, point, name, submits, forgotten, body)
SELECT :run, value ->> 'point', value ->> 'name', value ->> 'submits', value ->> 'forgotten',
       value ->> 'body'
  FROM json_each(:memories)
 WHERE true
    ON CONFLICT (run, point, name) DO UPDATE
   SET submits = max(memory.submits, excluded.submits), forgotten = excluded.forgotten,
       body = excluded.body;
