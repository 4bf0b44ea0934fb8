-- Scheduler, looking: what a run remembers.
SELECT body FROM tidewheel.memory WHERE run = :run AND NOT forgotten ORDER BY point, name;
