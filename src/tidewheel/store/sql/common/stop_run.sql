-- Abort: nobody drives it, and nobody shall.
UPDATE tidewheel.run
   SET status = 'stopped', reason = :reason, given = NULL, epoch = epoch + 1, host = NULL, boot_id = NULL, pid = NULL,
       process_started = NULL, deadline_at = NULL, updated_at = tidewheel.now_seconds(), ended_at = tidewheel.now_seconds()
 WHERE number = :run AND status NOT IN ('stopped', 'completed', 'deleted')
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING number;
