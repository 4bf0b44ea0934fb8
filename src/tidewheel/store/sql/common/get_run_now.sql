-- Scheduler: the database's clock, if there is such a run.
SELECT tidewheel.now_seconds() FROM tidewheel.run WHERE number = :run;
