-- Submit: store a new task; an id that is stored already is left out. `due_at` comes as seconds from now.
INSERT INTO task ({task_columns}, executes, digest, run, held_key, due_at, created_at, updated_at)
SELECT {:task_columns}, :executes, :digest, :run, :unique_key, clock.now + :due_at, clock.now, clock.now
  FROM (SELECT now_seconds() AS now) AS clock
 WHERE true
    ON CONFLICT (id) DO NOTHING;
