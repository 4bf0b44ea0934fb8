-- Scheduler: what is known of one task, forgotten or not.
SELECT submits, body FROM tidewheel.memory WHERE run = :run AND point = :point AND name = :name;
