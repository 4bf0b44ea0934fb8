-- Configure: nothing that was told of its lanes counts any more.
DELETE FROM tidewheel.lane_news WHERE queue = :queue;
