-- Configure: new limits replace the old ones.
DELETE FROM tidewheel.queue_limit WHERE queue = :queue;
