-- Delete, retention: nobody may take it any more; its name is taken until all of it is gone.
UPDATE tidewheel.run
   SET status = 'deleted', given = NULL, request = NULL, epoch = epoch + 1, host = NULL, boot_id = NULL, pid = NULL,
       process_started = NULL, deadline_at = NULL, updated_at = tidewheel.now_seconds()
 WHERE number = :run AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING name;
