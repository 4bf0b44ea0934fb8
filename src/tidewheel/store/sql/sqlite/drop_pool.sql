-- Scheduler: a task that left the pool.
DELETE FROM pool WHERE run = :run AND point = :point AND name = :name;
