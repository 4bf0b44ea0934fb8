-- Heartbeat: the worker was seen.
UPDATE tidewheel.worker SET seen_at = tidewheel.now_seconds() WHERE number = :worker_number;
