-- Scheduler, looking: what a run remembers.
SELECT body FROM tidewheel.memory WHERE run = %(run)s AND NOT forgotten ORDER BY point, name;
