-- Claim: in how many seconds the next delayed task of a queue is due.
SELECT min(due_at) - tidewheel.now_seconds() FROM tidewheel.ready WHERE queue = :queue AND delayed;
