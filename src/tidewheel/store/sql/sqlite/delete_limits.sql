-- Configure: new limits replace the old ones.
DELETE FROM queue_limit WHERE queue = :queue;
