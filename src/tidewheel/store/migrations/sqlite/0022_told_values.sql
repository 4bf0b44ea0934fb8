-- Messages with values (SQLite): what a job has told so far, JSON, on its way to the scheduler of its run.

ALTER TABLE event ADD COLUMN told TEXT;
