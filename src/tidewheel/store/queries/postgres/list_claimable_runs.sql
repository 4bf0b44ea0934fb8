-- Scheduler: runs whose scheduler died; one may have died before its first batch.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at
  FROM tidewheel.run
 WHERE deadline_at <= tidewheel.now_seconds()
   AND status IN ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping')
 ORDER BY number LIMIT %(count)s;
