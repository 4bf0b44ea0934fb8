-- Lanes: as many of a key run as its limit, or else that of each key, lets run at once.
{running_of_key}
           >= coalesce((SELECT coalesce(concurrency_max, 2147483647) FROM tidewheel.queue_limit
                         WHERE queue_limit.queue = :queue AND queue_limit.key = lane.key),
                       (SELECT concurrency_max FROM tidewheel.queue_limit
                         WHERE queue_limit.queue = :queue AND queue_limit.key = '*'), 2147483647)
