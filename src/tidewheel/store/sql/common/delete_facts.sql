-- Delete: what is left of a run in this table.
DELETE FROM tidewheel.run_fact WHERE run = :run;
