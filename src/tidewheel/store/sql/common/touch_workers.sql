-- Heartbeat: these workers were seen.
UPDATE tidewheel.worker SET seen_at = tidewheel.now_seconds() WHERE number = ANY (:numbers::bigint[]);
