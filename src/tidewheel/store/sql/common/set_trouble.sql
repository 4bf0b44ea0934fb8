-- Worker: why it takes no tasks just now, or that it does again.
UPDATE tidewheel.worker SET trouble = :trouble WHERE number = :worker_number RETURNING number;
