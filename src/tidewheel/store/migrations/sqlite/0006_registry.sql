-- Names and versions of definitions, requests of several runs at once, and what stages hand on (SQLite).

CREATE TABLE workflow (  -- the registry: a name and a version for a definition that is kept
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definition (digest),
    runnable INTEGER NOT NULL CHECK (runnable IN (0, 1)),  -- the second verdict
    findings TEXT NOT NULL,  -- JSON: what was said about it when it was registered
    parameters TEXT NOT NULL,  -- JSON: what a request may or must give
    registered_at REAL NOT NULL,
    registered_by TEXT NOT NULL,
    PRIMARY KEY (name, version)
) WITHOUT ROWID, STRICT;

CREATE INDEX workflow_definition ON workflow (definition);

CREATE TABLE run_need (  -- runs that begin after others have ended well
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    parent INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    condition TEXT NOT NULL CHECK (condition IN ('complete', 'started', 'failed', 'aborted', 'finished')),
    PRIMARY KEY (run, parent, condition)
) WITHOUT ROWID, STRICT;

CREATE INDEX run_need_parent ON run_need (parent);

ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;  -- of all its tasks, and among runs that wait

CREATE TABLE sbi (  -- scheduling block instances, as they were asked for
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,  -- JSON
    fingerprint TEXT NOT NULL,
    requested_at REAL NOT NULL,
    requested_by TEXT NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE processing_block (  -- each is a run
    id TEXT PRIMARY KEY,
    sbi TEXT NOT NULL REFERENCES sbi (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    run INTEGER NOT NULL UNIQUE REFERENCES run (number) ON DELETE CASCADE,
    body TEXT NOT NULL  -- JSON
) WITHOUT ROWID, STRICT;

CREATE INDEX processing_block_sbi ON processing_block (sbi, position);

CREATE TABLE buffer_object (  -- what stages wait for and no task makes
    name TEXT PRIMARY KEY,
    facts TEXT NOT NULL,  -- JSON
    posted_at REAL NOT NULL,
    posted_by TEXT NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE task_values (  -- what an attempt that ended well hands to those after it
    task_seq INTEGER PRIMARY KEY REFERENCES task (seq) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    body TEXT NOT NULL  -- JSON
) STRICT;
