-- Adopt: the lease goes to another worker of the same host.
UPDATE tidewheel.lease SET owner = :owner, deadline_at = tidewheel.now_seconds() + lease_seconds
 WHERE task_seq = :seq
RETURNING coalesce((SELECT fence_kill FROM tidewheel.queue WHERE name = lease.queue), false), lease_seconds;
