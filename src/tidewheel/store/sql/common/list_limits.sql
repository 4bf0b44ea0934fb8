-- Queues: every limit.
SELECT queue, key, concurrency_max, rate_max, rate_seconds FROM tidewheel.queue_limit ORDER BY queue, key;
