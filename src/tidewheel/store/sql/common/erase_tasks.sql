-- Delete: tasks of a run, whatever they are doing; outputs and usage go with them.
DELETE FROM tidewheel.task WHERE seq = ANY (:seqs::bigint[]) AND run IS NOT NULL;
