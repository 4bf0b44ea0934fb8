-- Claim: what a lease repeats of the task just claimed, whose right the worker has until the deadline.
attempt, owner, queue, limit_key
