-- Scheduler: take a run that nobody holds, or whose owner with this epoch is dead; not before what it waits for.
UPDATE tidewheel.run
   SET epoch = epoch + 1, host = :host, boot_id = :boot_id, pid = :pid,
       process_started = :process_started, deadline_at = tidewheel.now_seconds() + :lease_seconds, updated_at = tidewheel.now_seconds()
 WHERE number = :run AND status <> 'deleted'
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds() OR epoch = :dead_epoch::bigint)
   AND (:seen_epoch::bigint IS NULL OR epoch = :seen_epoch::bigint)
   AND {may_begin}
RETURNING epoch, batch;
