-- Abort: the tasks of a run that have not ended, oldest first.
SELECT id FROM tidewheel.task
 WHERE run = :run AND status NOT IN ('succeeded', 'failed', 'cancelled', 'cancelling')
 ORDER BY seq LIMIT :count;
