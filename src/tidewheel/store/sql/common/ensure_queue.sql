-- Run: its queue exists, with the lease that its tasks need; other settings stay as they are.
INSERT INTO tidewheel.queue (name, lease_seconds)
VALUES (:queue, :lease_seconds)
    ON CONFLICT (name) DO UPDATE SET lease_seconds = excluded.lease_seconds;
