-- Scheduler: what it has forgotten of tasks at a point, and is kept as it is.
UPDATE tidewheel.memory SET forgotten = true WHERE run = :run AND point = :point AND name = ANY (:names::text[]);
