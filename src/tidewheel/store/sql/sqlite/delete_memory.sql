-- Delete: what is left of a run in this table.
DELETE FROM memory WHERE run = :run;
