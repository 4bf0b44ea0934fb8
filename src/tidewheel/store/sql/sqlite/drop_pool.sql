-- Scheduler: tasks that left the pool.
DELETE FROM pool
 WHERE run = :run AND (point, name) IN (SELECT value ->> 'point', value ->> 'name' FROM jsonb_each(:tasks));
