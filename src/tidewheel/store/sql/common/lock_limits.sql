-- Claim under limits: the rules, locked so that claims count one after the other.
SELECT tidewheel.now_seconds() AS now, key, concurrency_max, rate_max, rate_seconds
  FROM tidewheel.queue_limit WHERE queue = :queue ORDER BY key FOR UPDATE;
