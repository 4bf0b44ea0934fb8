-- Scheduler, looking: the pool of a run.
SELECT body FROM tidewheel.pool WHERE run = %(run)s ORDER BY point, name;
