-- Scheduler: runs that are tasks of this one and have not ended; none of them can end before this is done.
SELECT number, name FROM tidewheel.run
 WHERE parent = :run AND name = ANY (:names::text[])
   AND status IN ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping')
   AND (deadline_at IS NOT NULL OR given IS NOT NULL)
 ORDER BY number
   FOR NO KEY UPDATE;
