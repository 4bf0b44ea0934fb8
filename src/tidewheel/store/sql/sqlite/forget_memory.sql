-- Scheduler: what it has forgotten of a task, and is kept as it is stored.
UPDATE memory SET forgotten = 1 WHERE run = :run AND point = :point AND name = :name;
