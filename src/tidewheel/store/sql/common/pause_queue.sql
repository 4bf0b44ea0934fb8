-- Pause, resume: nothing is claimed from a paused queue.
INSERT INTO tidewheel.queue (name, paused) VALUES (:queue, :paused)
    ON CONFLICT (name) DO UPDATE SET paused = excluded.paused;
