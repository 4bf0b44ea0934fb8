-- Scheduler: take a run that nobody holds, or whose owner with this epoch is dead.
UPDATE run
   SET epoch = epoch + 1, host = :host, boot_id = :boot_id, pid = :pid,
       process_started = :process_started, deadline_at = now_seconds() + :lease_seconds, updated_at = now_seconds()
 WHERE number = :run AND status <> 'deleted'
   AND (deadline_at IS NULL OR deadline_at <= now_seconds() OR epoch = :dead_epoch)
RETURNING epoch, batch;
