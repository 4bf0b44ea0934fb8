-- Delete: what is left of a run in this table.
DELETE FROM event WHERE run = :run;
