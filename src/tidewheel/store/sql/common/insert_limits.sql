-- Configure: the limits of a queue.
INSERT INTO tidewheel.queue_limit (queue, key, concurrency_max, rate_max, rate_seconds)
SELECT :queue, key, concurrency_max, rate_max, rate_seconds
  FROM json_to_recordset(:limits::json) AS rule (
           key text, concurrency_max integer, rate_max integer, rate_seconds float8);
