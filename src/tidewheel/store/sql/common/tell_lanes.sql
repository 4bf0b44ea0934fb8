-- Configure: each key of which a task is ready gets a lane.
INSERT INTO tidewheel.lane_news (queue, key)
SELECT DISTINCT queue, limit_key FROM tidewheel.ready WHERE queue = :queue AND laned AND delayed = false;
