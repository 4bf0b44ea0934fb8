-- Queues: every limit.
SELECT queue, key, concurrency_max, rate_max, rate_seconds FROM queue_limit ORDER BY queue, key;
