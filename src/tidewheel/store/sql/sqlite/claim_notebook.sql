-- Services: take a notebook that nobody holds, or whose owner with this epoch is dead.
UPDATE notebook
   SET epoch = epoch + 1, owner = :owner, deadline_at = now_seconds() + :lease_seconds
 WHERE name = :name
   AND (deadline_at IS NULL OR deadline_at <= now_seconds() OR epoch = :dead_epoch)
RETURNING epoch, owner, deadline_at, body, updated_at;
