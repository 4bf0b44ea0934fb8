-- Abort: nobody drives it, and nobody shall.
UPDATE run
   SET status = 'stopped', reason = :reason, given = NULL, epoch = epoch + 1, host = NULL, boot_id = NULL, pid = NULL,
       process_started = NULL, deadline_at = NULL, updated_at = now_seconds(), ended_at = now_seconds()
 WHERE number = :run AND status NOT IN ('stopped', 'completed', 'deleted')
   AND (deadline_at IS NULL OR deadline_at <= now_seconds())
RETURNING number;
