-- Submit: store new tasks that say the same but for id, spec and digest, which :tasks has. `due_at` comes as seconds from now.
WITH clock AS MATERIALIZED (SELECT now_seconds() AS now)
INSERT INTO task (id, spec, digest, {said_columns}, executes, due_at, created_at, updated_at)
SELECT value ->> 0, value ->> 1, coalesce(value ->> 2, :digest), {:said_columns}, :executes, now + :due_at, now, now
  FROM clock, jsonb_each(:tasks);
