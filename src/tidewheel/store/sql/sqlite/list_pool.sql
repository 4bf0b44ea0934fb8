-- Scheduler, looking: the pool of a run.
SELECT body FROM pool WHERE run = :run ORDER BY point, name;
