-- Scheduler: calls that were satisfied.
SELECT signature, result FROM xtrigger WHERE run = :run ORDER BY signature;
