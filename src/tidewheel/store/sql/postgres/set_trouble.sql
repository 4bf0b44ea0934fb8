-- Worker: why it takes no tasks just now, or that it does again.
UPDATE tidewheel.worker SET trouble = %(trouble)s WHERE number = %(worker_number)s RETURNING number;
