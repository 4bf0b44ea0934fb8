-- Delete: tasks of a run, whatever they are doing; outputs and usage go with them.
DELETE FROM task WHERE seq IN (SELECT value FROM json_each(:seqs)) AND run IS NOT NULL;
