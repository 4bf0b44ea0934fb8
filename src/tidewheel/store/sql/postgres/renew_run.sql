-- Scheduler: its lease of a run goes on.
UPDATE tidewheel.run SET deadline_at = tidewheel.now_seconds() + %(lease_seconds)s
 WHERE number = %(run)s AND epoch = %(epoch)s AND host IS NOT NULL
RETURNING number;
