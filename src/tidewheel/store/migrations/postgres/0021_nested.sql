-- A task may be a run of another workflow (PostgreSQL). Such a run is called as the submission, NAME/POINT/TASK/SUBMIT, and knows its parent.

ALTER TABLE tidewheel.run ADD COLUMN parent bigint REFERENCES tidewheel.run (number);

CREATE INDEX run_parent ON tidewheel.run (parent) WHERE parent IS NOT NULL;
