-- Delete: what is left of a run in this table.
DELETE FROM timer WHERE run = :run;
