-- Scheduler: the run goes on with another definition. With advance_run every batch would write that index.
UPDATE tidewheel.run SET definition = :definition WHERE number = :run;
