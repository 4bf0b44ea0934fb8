-- Operators: any scheduler may go on with a run that has ended, or whose own one died; what it was to go on with, it keeps.
UPDATE tidewheel.run
   SET given = coalesce(given, :given)
 WHERE number = :run AND status IN ('stopped', 'completed', 'running', 'paused', 'waiting for release', 'stalled', 'stopping')
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING number;
