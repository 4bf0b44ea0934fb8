-- Scheduler: its lease of a run goes on.
UPDATE tidewheel.run SET deadline_at = tidewheel.now_seconds() + :lease_seconds
 WHERE number = :run AND epoch = :epoch AND host IS NOT NULL
RETURNING number;
