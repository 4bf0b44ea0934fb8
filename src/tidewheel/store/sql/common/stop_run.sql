-- Abort: nobody drives it, and nobody shall. A run that was stopped is aborted, too; the first abort stays.
UPDATE tidewheel.run
   SET status = 'stopped', reason = :reason, given = NULL, epoch = epoch + 1, host = NULL, boot_id = NULL, pid = NULL,
       process_started = NULL, deadline_at = NULL, updated_at = tidewheel.now_seconds(), ended_at = tidewheel.now_seconds()
 WHERE number = :run AND status NOT IN ('completed', 'deleted')
   AND NOT (status = 'stopped' AND substr(reason, 1, length(:aborted::text)) = :aborted::text)
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING number;
