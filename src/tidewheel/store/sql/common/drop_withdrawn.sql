-- Scheduler: of this run nothing is withdrawn any more.
DELETE FROM tidewheel.withdrawn WHERE run = :run;
