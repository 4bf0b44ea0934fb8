-- Delete: what is left of a run in this table.
DELETE FROM pool WHERE run = :run;
