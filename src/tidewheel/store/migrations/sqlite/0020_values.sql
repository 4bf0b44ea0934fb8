-- Values of tasks of runs (SQLite): what each submission returned, or what was set by hand, for the tasks after it. They are the
-- scheduler's copy: a child reads them by point, name and flow, also when the submissions themselves are long gone.

CREATE TABLE run_values (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    submit INTEGER NOT NULL CHECK (submit >= 0),  -- 0: set by hand before there was any
    flows TEXT NOT NULL,  -- JSON array
    body TEXT NOT NULL,  -- JSON object; '': it returned none
    PRIMARY KEY (run, point, name, submit)
) WITHOUT ROWID, STRICT;
