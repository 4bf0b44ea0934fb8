-- Scheduler: what it has forgotten of tasks, and is kept as it is stored.
UPDATE memory SET forgotten = 1
 WHERE run = :run AND (point, name) IN (SELECT value ->> 'point', value ->> 'name' FROM jsonb_each(:tasks));
