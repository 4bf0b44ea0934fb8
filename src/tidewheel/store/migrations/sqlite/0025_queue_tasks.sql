-- Tasks that are no jobs of runs, newest first (SQLite): a list of them passes over no job.

CREATE INDEX task_of_no_run ON task (seq) WHERE run IS NULL;
