-- Claim under limits: how many starts each key has left.
SELECT key, tokens, refilled_at FROM tidewheel.bucket WHERE queue = :queue ORDER BY key;
