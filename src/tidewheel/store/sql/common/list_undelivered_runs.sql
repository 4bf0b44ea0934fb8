-- Scheduler: runs that are over although somebody is still to be told of them; oldest first.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE number IN (SELECT run FROM tidewheel.outbox)
   AND status IN ('completed', 'stopped', 'stalled', 'error')
   AND deadline_at IS NULL AND given IS NULL AND updated_at <= tidewheel.now_seconds() - :quiet_seconds
 ORDER BY number LIMIT :count;
