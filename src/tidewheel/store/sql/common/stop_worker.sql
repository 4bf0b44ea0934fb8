-- Worker: it takes no more tasks.
UPDATE tidewheel.worker SET stopped_at = tidewheel.now_seconds() WHERE number = :worker_number RETURNING number;
