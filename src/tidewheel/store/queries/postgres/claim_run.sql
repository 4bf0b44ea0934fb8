-- Scheduler: take a run that nobody holds, or whose owner with this epoch is dead.
UPDATE tidewheel.run
   SET epoch = epoch + 1, host = %(host)s, boot_id = %(boot_id)s, pid = %(pid)s,
       process_started = %(process_started)s, deadline_at = tidewheel.now_seconds() + %(lease_seconds)s, updated_at = tidewheel.now_seconds()
 WHERE number = %(run)s AND status <> 'deleted'
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds() OR epoch = %(dead_epoch)s::bigint)
RETURNING epoch, batch;
