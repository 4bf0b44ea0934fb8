-- Scheduler: calls that were satisfied.
SELECT signature, result FROM tidewheel.xtrigger WHERE run = :run ORDER BY signature;
