-- Scheduler: the run goes on with another definition. Apart from advance_run, as SQLite would write the index
-- of definitions with each batch.
UPDATE tidewheel.run SET definition = :definition WHERE number = :run;
