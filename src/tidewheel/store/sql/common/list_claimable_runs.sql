-- Scheduler: runs whose own one died, and those that wait for any and for no other run; by priority, then age.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM tidewheel.run
 WHERE ((deadline_at <= tidewheel.now_seconds()
         AND status IN ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping'))
        OR (given IS NOT NULL AND status <> 'deleted' AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())))
   AND (batch > 0 OR NOT EXISTS (
           SELECT 1 FROM tidewheel.run_need AS need JOIN tidewheel.run AS parent ON parent.number = need.parent
            WHERE need.run = run.number
              AND NOT CASE need.condition
                      WHEN 'complete' THEN parent.status = 'completed'
                      WHEN 'started' THEN parent.batch > 0
                      WHEN 'failed' THEN parent.status IN ('stalled', 'error')
                      WHEN 'aborted' THEN parent.status IN ('stalled', 'error', 'stopped')
                      ELSE parent.status IN ('stalled', 'error', 'stopped', 'completed') END))
 ORDER BY priority DESC, number LIMIT :count;
