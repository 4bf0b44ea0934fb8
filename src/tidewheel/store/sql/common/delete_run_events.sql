-- Delete: what is left of a run in this table.
DELETE FROM tidewheel.event WHERE run = :run;
