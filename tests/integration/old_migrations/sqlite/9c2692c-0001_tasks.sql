CREATE TABLE store_identity (
    id TEXT NOT NULL
) STRICT;
INSERT INTO store_identity (id) VALUES (lower(hex(randomblob(16))));
CREATE TABLE queue (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    aging INTEGER NOT NULL DEFAULT 0,
    fence_kill INTEGER NOT NULL DEFAULT 0,
    lease_seconds REAL NOT NULL DEFAULT 10 CHECK (lease_seconds > 0)
) STRICT;
CREATE TABLE queue_limit (
    queue TEXT NOT NULL REFERENCES queue (name) ON DELETE CASCADE,
    key TEXT NOT NULL,
    concurrency_max INTEGER CHECK (concurrency_max >= 0),
    rate_max INTEGER CHECK (rate_max >= 1),
    rate_seconds REAL NOT NULL CHECK (rate_seconds > 0),
    PRIMARY KEY (queue, key)
) STRICT;
CREATE TABLE bucket (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    tokens REAL NOT NULL,
    refilled_at REAL NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT;
CREATE TABLE worker (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started REAL NOT NULL,
    queues TEXT NOT NULL,
    slots INTEGER NOT NULL CHECK (slots >= 1),
    cpu REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    gpu INTEGER NOT NULL,
    labels TEXT,
    registered_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    stopped_at REAL
) STRICT;
CREATE INDEX worker_host ON worker (host, boot_id);
CREATE TABLE task (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    name TEXT,
    spec TEXT,
    command TEXT,
    handler TEXT,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4294967295),
    status TEXT NOT NULL CHECK (status IN
        ('waiting', 'ready', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    lapses INTEGER NOT NULL DEFAULT 0 CHECK (lapses >= 0),
    max_retries INTEGER NOT NULL CHECK (max_retries >= 0),
    retry TEXT NOT NULL,
    max_lapses INTEGER NOT NULL CHECK (max_lapses >= 0),
    timeout_seconds REAL CHECK (timeout_seconds > 0),
    estimated_runtime_seconds REAL CHECK (estimated_runtime_seconds > 0),
    max_termination_seconds REAL NOT NULL CHECK (max_termination_seconds >= 0),
    cpu REAL NOT NULL CHECK (cpu >= 0),
    memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
    gpu INTEGER NOT NULL CHECK (gpu >= 0),
    labels TEXT,
    unique_key TEXT,
    held_key TEXT,
    limit_key TEXT,
    tag TEXT,
    armed INTEGER NOT NULL,
    executes INTEGER NOT NULL,
    graph INTEGER,
    owner TEXT,
    progress REAL NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
    due_at REAL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    digest TEXT NOT NULL,
    CHECK ((owner IS NULL) = (status IN ('waiting', 'ready'))
        OR (owner IS NULL AND status IN ('succeeded', 'cancelled'))),
    CHECK (status <> 'succeeded' OR progress = 1),
    CHECK (status <> 'running' OR attempt > 0)
) STRICT;
CREATE INDEX task_graph ON task (graph) WHERE graph IS NOT NULL;
CREATE INDEX task_waiting ON task (seq) WHERE graph IS NOT NULL OR NOT armed;
CREATE INDEX task_tag ON task (tag, seq) WHERE tag IS NOT NULL;
CREATE INDEX task_runtime ON task (estimated_runtime_seconds)
    WHERE estimated_runtime_seconds IS NOT NULL;
CREATE INDEX task_memory ON task (memory_bytes) WHERE memory_bytes > 0;
CREATE UNIQUE INDEX task_name ON task (name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX task_held_key ON task (queue, held_key) WHERE held_key IS NOT NULL;
CREATE TABLE ready (
    queue TEXT NOT NULL,
    delayed INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    task_seq INTEGER NOT NULL,
    due_at REAL,
    ready_at REAL NOT NULL,
    cpu REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    gpu INTEGER NOT NULL,
    labels TEXT,
    has_command INTEGER NOT NULL,
    handler TEXT,
    limit_key TEXT,
    PRIMARY KEY (queue, delayed, rank, task_seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX ready_due ON ready (queue, due_at) WHERE delayed;
CREATE TABLE lease (
    task_seq INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL CHECK (attempt > 0),
    owner TEXT NOT NULL,
    queue TEXT NOT NULL,
    limit_key TEXT,
    deadline_at REAL NOT NULL,
    lease_seconds REAL NOT NULL CHECK (lease_seconds > 0),
    claimed_at REAL NOT NULL,
    started_at REAL,
    progress REAL NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
    messages INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE attempt (
    task_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt > 0),
    worker TEXT NOT NULL,
    claimed_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL NOT NULL,
    ended_by TEXT NOT NULL,
    exit_status INTEGER,
    error_code TEXT,
    error_args TEXT,
    error_description TEXT,
    metrics TEXT,
    PRIMARY KEY (task_seq, attempt)
) STRICT;
CREATE TABLE dependency (
    parent INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    child INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    output TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'met', 'dead')),
    PRIMARY KEY (parent, child, output),
    CHECK (parent <> child)
) STRICT;
CREATE INDEX dependency_child ON dependency (child, state);
CREATE TABLE output (
    task_seq INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    number INTEGER NOT NULL CHECK (number > 0),
    at REAL NOT NULL,
    text TEXT NOT NULL,
    output TEXT,
    PRIMARY KEY (task_seq, attempt, number)
) STRICT;
CREATE TABLE usage (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    at REAL NOT NULL,
    memory_bytes INTEGER,
    cpu_percent REAL,
    gpu_percent REAL,
    gpu_memory_bytes INTEGER
) STRICT;
CREATE INDEX usage_task ON usage (task_seq, seq);
CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL,
    at REAL NOT NULL,
    signal TEXT,
    from_status TEXT,
    to_status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT,
    progress REAL NOT NULL,
    CHECK (signal IS NOT NULL OR (from_status IS NULL AND to_status IN ('waiting', 'ready'))),
    CHECK (signal IS NULL OR from_status IS NOT NULL),
    CHECK (signal IS NULL OR from_status || ' ' || signal || ' ' || to_status IN (
        'waiting satisfy ready',
        'waiting skip succeeded',
        'waiting cancel cancelled',
        'ready skip succeeded',
        'ready claim running',
        'ready cancel cancelled',
        'running succeed succeeded',
        'running retry ready',
        'running fail failed',
        'running abort failed',
        'running yield ready',
        'running adopt running',
        'running lapse ready',
        'running lapse_out failed',
        'running time_out failed',
        'running cancel cancelling',
        'cancelling succeed cancelled',
        'cancelling retry cancelled',
        'cancelling fail cancelled',
        'cancelling abort cancelled',
        'cancelling yield cancelled',
        'cancelling adopt cancelling',
        'cancelling lapse cancelled',
        'cancelling lapse_out cancelled',
        'cancelling time_out cancelled'
    ))
) STRICT;
CREATE INDEX history_task ON history (task_seq, seq);
CREATE INDEX history_ended ON history (at)
    WHERE to_status IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX history_unwell ON history (to_status, task_seq)
    WHERE to_status IN ('failed', 'cancelled');
