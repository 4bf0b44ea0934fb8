-- Heartbeat: the worker was seen.
UPDATE worker SET seen_at = now_seconds() WHERE number = :worker_number;
