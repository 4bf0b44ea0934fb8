-- Tasks that are no jobs of runs, newest first (PostgreSQL): a list of them passes over no job.

CREATE INDEX task_of_no_run ON tidewheel.task (seq) WHERE run IS NULL;
