-- Values of tasks of runs (PostgreSQL): what each submission returned, or what was set by hand, for the tasks after it. They are the
-- scheduler's copy: a child reads them by point, name and flow, also when the submissions themselves are long gone.

CREATE TABLE tidewheel.run_values (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    point bigint NOT NULL,
    name text NOT NULL,
    submit integer NOT NULL CHECK (submit >= 0),  -- 0: set by hand before there was any
    flows text NOT NULL,  -- JSON array
    body text NOT NULL,  -- JSON object; '': it returned none
    PRIMARY KEY (run, point, name, submit)
);
