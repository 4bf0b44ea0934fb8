-- The definitions that a run had (SQLite): a run that is reloaded says what it was before. A run that never was has no rows.

CREATE TABLE run_version (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    version INTEGER NOT NULL CHECK (version >= 1),  -- 1: what it began with
    definition TEXT NOT NULL REFERENCES definition (digest),
    at REAL NOT NULL,
    who TEXT NOT NULL,  -- who reloaded it; '' for the first
    PRIMARY KEY (run, version)
) WITHOUT ROWID, STRICT;

CREATE INDEX run_version_definition ON run_version (definition);
