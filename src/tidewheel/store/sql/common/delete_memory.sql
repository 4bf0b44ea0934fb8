-- Delete: what is left of a run in this table.
DELETE FROM tidewheel.memory WHERE run = :run;
