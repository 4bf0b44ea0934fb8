-- Pause, resume: nothing is claimed from a paused queue.
INSERT INTO tidewheel.queue (name, paused) VALUES (%(queue)s, %(paused)s)
    ON CONFLICT (name) DO UPDATE SET paused = excluded.paused;
