-- Scheduler: the changes of a batch, for those who want to know how the run was.
INSERT INTO tidewheel.run_change (run, batch, at, changes) VALUES (%(run)s, %(batch)s, tidewheel.now_seconds(), %(changes)s);
