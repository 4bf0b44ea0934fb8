-- Configure: the lanes of a queue are made anew.
DELETE FROM tidewheel.lane WHERE queue = :queue;
