-- Worker: why it takes no tasks just now, or that it does again.
UPDATE worker SET trouble = :trouble WHERE number = :worker_number RETURNING number;
