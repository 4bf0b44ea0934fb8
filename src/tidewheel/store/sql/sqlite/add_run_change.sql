-- Scheduler: the changes of a batch, for those who want to know how the run was.
INSERT INTO run_change (run, batch, at, changes) VALUES (:run, :batch, now_seconds(), :changes);
