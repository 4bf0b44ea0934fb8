-- Verify T15: progress is between 0 and 1, and 1 after success.
SELECT id, status || ' with progress ' || progress
  FROM tidewheel.task
 WHERE progress < 0 OR progress > 1 OR (status = 'succeeded' AND progress <> 1)
 ORDER BY seq;
