-- Run: its queue exists, with the lease that its tasks need or a longer one; all else stays as it is.
INSERT INTO tidewheel.queue (name, lease_seconds)
VALUES (:queue, :lease_seconds)
    ON CONFLICT (name) DO UPDATE SET lease_seconds = excluded.lease_seconds
 WHERE tidewheel.queue.lease_seconds < excluded.lease_seconds;
