-- Scheduler, looking: the pool of a run.
SELECT body FROM tidewheel.pool WHERE run = :run ORDER BY point, name;
