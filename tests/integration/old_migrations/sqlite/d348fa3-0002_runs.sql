CREATE TABLE definition (
    digest TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    variables TEXT NOT NULL,
    files TEXT NOT NULL,
    saved_at REAL NOT NULL
) STRICT;
CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definition (digest),
    options TEXT NOT NULL,
    folder TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN
        ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping', 'stopped',
         'completed', 'error', 'deleted')),
    reason TEXT NOT NULL DEFAULT '',
    host TEXT,
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
CREATE TABLE pool (
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    stage INTEGER NOT NULL CHECK (stage BETWEEN 0 AND 4),
    submit INTEGER NOT NULL CHECK (submit >= 0),
    flows TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, point, name)
) WITHOUT ROWID, STRICT;
CREATE TABLE memory (
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    submits INTEGER NOT NULL CHECK (submits >= 0),
    forgotten INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, point, name)
) WITHOUT ROWID, STRICT;
CREATE TABLE run_fact (
    run INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'flow', 'chain', 'absolute')),
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, kind, key)
) WITHOUT ROWID, STRICT;
CREATE TABLE timer (
    run INTEGER NOT NULL,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    timer TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (run, point, name, timer)
) WITHOUT ROWID, STRICT;
CREATE TABLE event (
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
CREATE TABLE command (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    at REAL NOT NULL,
    who TEXT NOT NULL,
    body TEXT NOT NULL,
    answered_at REAL,
    answer TEXT,
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
    PRIMARY KEY (run, point, namespace, setting)
) WITHOUT ROWID, STRICT;
CREATE TABLE xtrigger (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    signature TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (run, signature)
) WITHOUT ROWID, STRICT;
CREATE TABLE run_change (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    at REAL NOT NULL,
    changes TEXT NOT NULL,
    PRIMARY KEY (run, batch)
) STRICT;
ALTER TABLE task ADD COLUMN run INTEGER;
CREATE INDEX task_run ON task (run, seq) WHERE run IS NOT NULL;
