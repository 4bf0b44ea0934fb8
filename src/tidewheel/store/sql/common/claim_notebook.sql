-- Services: take a notebook that nobody holds, or whose owner with this epoch is dead.
UPDATE tidewheel.notebook
   SET epoch = epoch + 1, owner = :owner, deadline_at = tidewheel.now_seconds() + :lease_seconds::float8
 WHERE name = :name
   AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds() OR epoch = :dead_epoch::bigint)
RETURNING epoch, owner, deadline_at, body, updated_at;
