-- Scheduler, looking: flows, chains, absolute atoms and the run itself.
SELECT kind, body FROM tidewheel.run_fact WHERE run = :run ORDER BY kind DESC, key;
