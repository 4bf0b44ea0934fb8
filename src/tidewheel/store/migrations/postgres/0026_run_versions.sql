-- The definitions that a run had (PostgreSQL): a run that is reloaded says what it was before. A run that never was has no rows.

CREATE TABLE tidewheel.run_version (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    version bigint NOT NULL CHECK (version >= 1),  -- 1: what it began with
    definition text NOT NULL REFERENCES tidewheel.definition (digest),
    at double precision NOT NULL,
    who text NOT NULL,  -- who reloaded it; '' for the first
    PRIMARY KEY (run, version)
);

CREATE INDEX run_version_definition ON tidewheel.run_version (definition);
