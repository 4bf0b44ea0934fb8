-- Configure: the limits of a queue.
INSERT INTO queue_limit (queue, key, concurrency_max, rate_max, rate_seconds)
SELECT :queue, value ->> 'key', value ->> 'concurrency_max', value ->> 'rate_max', value ->> 'rate_seconds'
  FROM json_each(:limits);
