-- Worker: it takes no more tasks.
UPDATE worker SET stopped_at = now_seconds() WHERE number = :worker_number RETURNING number;
