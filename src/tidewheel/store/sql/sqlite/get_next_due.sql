-- Claim: in how many seconds the next delayed task of a queue is due.
SELECT min(due_at) - now_seconds() FROM ready WHERE queue = :queue AND delayed;
