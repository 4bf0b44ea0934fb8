-- Carry on: any scheduler may take a run that nobody holds.
UPDATE tidewheel.run
   SET given = :given, updated_at = tidewheel.now_seconds()
 WHERE number = :run AND status <> 'deleted' AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING number;
