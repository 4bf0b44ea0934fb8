-- Messages with values: what a job has told so far, JSON, on its way to the scheduler of its run.

ALTER TABLE tidewheel.event ADD COLUMN told text;
