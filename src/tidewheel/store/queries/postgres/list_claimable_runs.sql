-- Scheduler: runs whose scheduler died, perhaps before its first batch, and those that wait for any.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM tidewheel.run
 WHERE (deadline_at <= tidewheel.now_seconds()
        AND status IN ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping'))
    OR (given IS NOT NULL AND status <> 'deleted' AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds()))
 ORDER BY number LIMIT %(count)s;
