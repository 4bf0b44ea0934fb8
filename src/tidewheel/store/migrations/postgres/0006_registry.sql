-- Names and versions of definitions, requests of several runs at once, and what stages hand on (PostgreSQL).

CREATE TABLE tidewheel.workflow (  -- the registry: a name and a version for a definition that is kept
    name text NOT NULL,
    version text NOT NULL,
    definition text NOT NULL REFERENCES tidewheel.definition (digest),
    runnable boolean NOT NULL,  -- the second verdict
    findings text NOT NULL,  -- JSON: what was said about it when it was registered
    parameters text NOT NULL,  -- JSON: what a request may or must give
    registered_at double precision NOT NULL,
    registered_by text NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE INDEX workflow_definition ON tidewheel.workflow (definition);

CREATE TABLE tidewheel.run_need (  -- runs that begin after others have ended well
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    parent bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    condition text NOT NULL CHECK (condition IN ('complete', 'started', 'failed', 'aborted', 'finished')),
    PRIMARY KEY (run, parent, condition)
);

CREATE INDEX run_need_parent ON tidewheel.run_need (parent);

ALTER TABLE tidewheel.run ADD COLUMN priority bigint NOT NULL DEFAULT 0;  -- of all its tasks, and among runs that wait

CREATE TABLE tidewheel.sbi (  -- scheduling block instances, as they were asked for
    id text PRIMARY KEY,
    body text NOT NULL,  -- JSON
    fingerprint text NOT NULL,
    requested_at double precision NOT NULL,
    requested_by text NOT NULL
);

CREATE TABLE tidewheel.processing_block (  -- each is a run
    id text PRIMARY KEY,
    sbi text NOT NULL REFERENCES tidewheel.sbi (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    run bigint NOT NULL UNIQUE REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    body text NOT NULL  -- JSON
);

CREATE INDEX processing_block_sbi ON tidewheel.processing_block (sbi, position);

CREATE TABLE tidewheel.buffer_object (  -- what stages wait for and no task makes
    name text PRIMARY KEY,
    facts text NOT NULL,  -- JSON
    posted_at double precision NOT NULL,
    posted_by text NOT NULL
);

CREATE TABLE tidewheel.task_values (  -- what an attempt that ended well hands to those after it
    task_seq bigint PRIMARY KEY REFERENCES tidewheel.task (seq) ON DELETE CASCADE,
    attempt bigint NOT NULL,
    body text NOT NULL  -- JSON
);
