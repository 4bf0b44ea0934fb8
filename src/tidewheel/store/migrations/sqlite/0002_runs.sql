-- Runs of workflows, and what their schedulers know (SQLite).
-- The pool and what is remembered are rows of the scheduling core (core/sched/records.py) as JSON in
-- `body`, written and read whole; columns beside it are what queries look at (docs/decisions/0014).
-- Like the tables of attempts, these have no foreign keys where rows come and go with every task.

CREATE TABLE definition (
    digest TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    variables TEXT NOT NULL,  -- JSON
    files TEXT NOT NULL,  -- JSON: [[path, content in base64, executable], …]
    saved_at REAL NOT NULL
) STRICT;

CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definition (digest),
    options TEXT NOT NULL,  -- JSON
    folder TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN
        ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping', 'stopped',
         'completed', 'error', 'deleted')),  -- deleted: what is left of it is being removed
    reason TEXT NOT NULL DEFAULT '',
    host TEXT,  -- with the next three: the process that drives it
    boot_id TEXT,
    pid INTEGER,
    process_started REAL,
    deadline_at REAL,
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    batch INTEGER NOT NULL DEFAULT 0 CHECK (batch >= 0),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    ended_at REAL,
    CHECK ((host IS NULL) = (deadline_at IS NULL)),
    CHECK ((host IS NULL) = (boot_id IS NULL) AND (host IS NULL) = (pid IS NULL)
        AND (host IS NULL) = (process_started IS NULL)),
    CHECK (host IS NULL OR epoch > 0)
) STRICT;

CREATE INDEX run_workflow ON run (workflow, number);
CREATE INDEX run_definition ON run (definition);

CREATE TABLE pool (  -- tasks that still can or must happen
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    stage INTEGER NOT NULL CHECK (stage BETWEEN 0 AND 4),
    submit INTEGER NOT NULL CHECK (submit >= 0),
    flows TEXT NOT NULL,  -- JSON array
    body TEXT NOT NULL,
    PRIMARY KEY (run, point, name)
) WITHOUT ROWID, STRICT;

CREATE TABLE memory (  -- what is known of tasks, in the pool or not
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    submits INTEGER NOT NULL CHECK (submits >= 0),  -- the highest there ever was
    forgotten INTEGER NOT NULL,  -- the scheduler has let it go; it is kept as history
    body TEXT NOT NULL,
    PRIMARY KEY (run, point, name)
) WITHOUT ROWID, STRICT;

-- A long run has forgotten nearly all of its tasks; whoever reads it must not walk past them.
CREATE INDEX memory_known ON memory (run, point, name) WHERE NOT forgotten;

CREATE TABLE run_fact (  -- chains, absolute atoms, flows, and the state of the run itself
    run INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'flow', 'chain', 'absolute')),
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, kind, key)
) WITHOUT ROWID, STRICT;

CREATE TABLE timer (
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,  -- 0 for the run's own
    name TEXT NOT NULL,  -- '' for the run's own
    timer TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (run, point, name, timer)
) WITHOUT ROWID, STRICT;

CREATE TABLE event (  -- what happened to a run and its scheduler has not dealt with yet
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('started', 'said', 'over', 'command')),
    task_id TEXT,
    attempt INTEGER,
    text TEXT,
    output TEXT,
    status TEXT CHECK (status IN ('succeeded', 'failed', 'cancelled')),
    error_code TEXT,
    error TEXT,
    exit_status INTEGER,
    command INTEGER,
    CHECK ((kind = 'command') = (command IS NOT NULL)),
    CHECK ((kind = 'command') = (task_id IS NULL)),
    CHECK ((kind = 'over') = (status IS NOT NULL))
) STRICT;

CREATE INDEX event_run ON event (run, seq);

CREATE TABLE command (  -- what operators want of a run
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    at REAL NOT NULL,
    who TEXT NOT NULL,
    body TEXT NOT NULL,  -- JSON
    answered_at REAL,
    answer TEXT,  -- JSON
    refused TEXT,
    CHECK ((answered_at IS NULL) = (answer IS NULL))
) STRICT;

CREATE INDEX command_run ON command (run, number);

CREATE TABLE broadcast (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    point TEXT NOT NULL,
    namespace TEXT NOT NULL,
    setting TEXT NOT NULL,
    value TEXT NOT NULL,
    place INTEGER NOT NULL,  -- the latest counts most
    PRIMARY KEY (run, point, namespace, setting)
) WITHOUT ROWID, STRICT;

CREATE TABLE xtrigger (  -- calls that were satisfied
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    signature TEXT NOT NULL,
    result TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, signature)
) WITHOUT ROWID, STRICT;

CREATE TABLE run_change (  -- append-only: the run as it was at any batch can be made from these
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    at REAL NOT NULL,
    changes TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, batch)
) STRICT;

ALTER TABLE task ADD COLUMN run INTEGER;  -- whose submission it is; NULL for tasks of clients

CREATE INDEX task_run ON task (run, seq) WHERE run IS NOT NULL;
