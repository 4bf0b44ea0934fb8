-- Claim under a rate of the whole queue: how many starts it has left.
SELECT key, tokens, refilled_at FROM tidewheel.bucket WHERE queue = :queue AND key = '';
