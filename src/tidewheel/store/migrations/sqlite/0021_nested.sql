-- A task may be a run of another workflow (SQLite). Such a run is called as the submission, NAME/POINT/TASK/SUBMIT, and knows its parent.

ALTER TABLE run ADD COLUMN parent INTEGER REFERENCES run (number);

CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
