-- Scheduler: the changes of a batch, for those who want to know how the run was.
INSERT INTO tidewheel.run_change (run, batch, at, changes) VALUES (:run, :batch, tidewheel.now_seconds(), :changes);
