-- Scheduler: whether any task of a run has returned values.
SELECT submit FROM tidewheel.run_values WHERE run = :run LIMIT 1;
