-- Scheduler: of this run nothing is withdrawn any more.
DELETE FROM withdrawn WHERE run = :run;
