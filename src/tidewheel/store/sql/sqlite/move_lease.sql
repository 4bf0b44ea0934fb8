-- Adopt: the lease goes to another worker of the same host.
UPDATE lease SET owner = :owner, deadline_at = now_seconds() + lease_seconds
 WHERE task_seq = :seq
RETURNING coalesce((SELECT fence_kill FROM queue WHERE name = lease.queue), false), lease_seconds;
