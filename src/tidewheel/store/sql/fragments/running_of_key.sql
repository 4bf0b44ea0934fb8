-- Lanes: how many tasks of the lane's key run.
(SELECT count(*) FROM tidewheel.lease WHERE lease.queue = :queue AND lease.limit_key = lane.key)
