-- Scheduler: runs that are over although somebody is still to be told of them; oldest first.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM tidewheel.run
 WHERE number IN (SELECT run FROM tidewheel.outbox)
   AND status IN ('completed', 'stopped', 'stalled', 'error')
   AND deadline_at IS NULL AND given IS NULL AND updated_at <= tidewheel.now_seconds() - :quiet_seconds
 ORDER BY number LIMIT :count;
