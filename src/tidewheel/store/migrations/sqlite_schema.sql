-- What all migrations of SQLite make of nothing: written by docs/write_schema.py.

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_at REAL NOT NULL
) STRICT;

CREATE TABLE store_identity (
    id TEXT NOT NULL
) STRICT;

CREATE TABLE queue (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0,
    aging INTEGER NOT NULL DEFAULT 0,
    fence_kill INTEGER NOT NULL DEFAULT 0,
    lease_seconds REAL NOT NULL DEFAULT 10 CHECK (lease_seconds > 0)
, fair INTEGER NOT NULL DEFAULT 0, lanes INTEGER NOT NULL DEFAULT 0, turns INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE queue_limit (
    queue TEXT NOT NULL REFERENCES queue (name) ON DELETE CASCADE,
    key TEXT NOT NULL,  -- '' the whole queue, '*' each key without a limit of its own
    concurrency_max INTEGER CHECK (concurrency_max >= 0),
    rate_max INTEGER CHECK (rate_max >= 1),
    rate_seconds REAL NOT NULL CHECK (rate_seconds > 0),
    PRIMARY KEY (queue, key)
) STRICT;

CREATE TABLE bucket (  -- how many starts a limited key has left
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    tokens REAL NOT NULL,
    refilled_at REAL NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT;

CREATE TABLE task (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- older tasks have smaller numbers
    id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    name TEXT,
    spec TEXT,  -- JSON text, never interpreted here
    command TEXT,
    handler TEXT,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4294967295),
    status TEXT NOT NULL CHECK (status = 'succeeded' OR status = 'running' OR status IN
        ('waiting', 'ready', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    lapses INTEGER NOT NULL DEFAULT 0 CHECK (lapses >= 0),
    max_retries INTEGER NOT NULL CHECK (max_retries >= 0),
    retry TEXT NOT NULL,  -- JSON: a retry policy
    max_lapses INTEGER NOT NULL CHECK (max_lapses >= 0),
    timeout_seconds REAL CHECK (timeout_seconds > 0),
    estimated_runtime_seconds REAL CHECK (estimated_runtime_seconds > 0),
    max_termination_seconds REAL NOT NULL CHECK (max_termination_seconds >= 0),
    cpu REAL NOT NULL CHECK (cpu >= 0),
    memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
    gpu INTEGER NOT NULL CHECK (gpu >= 0),
    labels TEXT,  -- JSON array, NULL if none is asked
    unique_key TEXT,
    held_key TEXT,  -- the unique key until the task ends
    limit_key TEXT,
    tag TEXT,
    armed INTEGER NOT NULL,
    executes INTEGER NOT NULL,
    graph INTEGER,  -- tasks tied by dependencies share a number; NULL without any
    owner TEXT,
    progress REAL NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),  -- at the last step
    due_at REAL,  -- not before this time
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    digest TEXT NOT NULL, run INTEGER, nodes INTEGER NOT NULL DEFAULT 1 CHECK (nodes >= 1), exclusive INTEGER NOT NULL DEFAULT 0 CHECK (exclusive IN (0, 1)), buffer_bytes INTEGER NOT NULL DEFAULT 0 CHECK (buffer_bytes >= 0), environment TEXT, flavours TEXT,  -- of the submitted body
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

CREATE TABLE attempt (  -- leases that are over
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

CREATE TABLE output (  -- messages and custom outputs of an attempt, numbered without gaps
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
    signal TEXT,  -- NULL: the task was created
    from_status TEXT,
    to_status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT,
    progress REAL NOT NULL,
    CHECK (signal IS NOT NULL OR (from_status IS NULL AND to_status IN ('waiting', 'ready'))),
    CHECK (signal IS NULL OR from_status IS NOT NULL),
    CHECK (signal IS NULL
        OR (signal = 'claim' AND from_status = 'ready' AND to_status = 'running')
        OR (signal = 'succeed' AND from_status = 'running' AND to_status = 'succeeded')
        OR from_status || ' ' || signal || ' ' || to_status IN (
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
    ended_at REAL, given TEXT, request TEXT, priority INTEGER NOT NULL DEFAULT 0, sees TEXT, parent INTEGER REFERENCES run (number),
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
    command INTEGER, told TEXT,
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

CREATE INDEX task_run ON task (run, seq) WHERE run IS NOT NULL;

CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    token INTEGER,
    who TEXT NOT NULL,
    client TEXT NOT NULL,
    verb TEXT NOT NULL,
    target TEXT NOT NULL,
    status INTEGER NOT NULL,
    correlation TEXT NOT NULL
, sha256 TEXT CHECK (length(sha256) = 64)) STRICT;

CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is only added to');
END;

CREATE TABLE idempotency (
    token INTEGER NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (token, key)
) WITHOUT ROWID, STRICT;

CREATE INDEX idempotency_at ON idempotency (at);

CREATE TABLE run_history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    behind INTEGER NOT NULL,  -- a seq of history
    at REAL NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    workflow TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    batch INTEGER NOT NULL
) STRICT;

CREATE INDEX run_history_place ON run_history (behind, seq);

CREATE INDEX run_history_run ON run_history (run);

CREATE INDEX run_history_deleted ON run_history (at) WHERE status = 'deleted';

CREATE TABLE event_floor (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    major INTEGER NOT NULL,
    minor INTEGER NOT NULL
) STRICT;

CREATE TRIGGER run_is_told AFTER INSERT ON run
BEGIN
    INSERT INTO run_history (behind, at, run, name, workflow, queue, status, reason, batch)
    VALUES (coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'history'), 0), NEW.updated_at,
            NEW.number, NEW.name, NEW.workflow, NEW.queue, NEW.status, NEW.reason, NEW.batch);
END;

CREATE TRIGGER run_change_is_told AFTER UPDATE OF batch, status ON run
WHEN OLD.batch <> NEW.batch OR OLD.status <> NEW.status
BEGIN
    INSERT INTO run_history (behind, at, run, name, workflow, queue, status, reason, batch)
    VALUES (coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'history'), 0), NEW.updated_at,
            NEW.number, NEW.name, NEW.workflow, NEW.queue, NEW.status, NEW.reason, NEW.batch);
END;

CREATE TRIGGER run_is_forgotten AFTER DELETE ON run
BEGIN
    DELETE FROM run_history WHERE run = OLD.number AND status <> 'deleted';
    DELETE FROM run_history WHERE status = 'deleted' AND at < OLD.updated_at - 2592000;
END;

CREATE TRIGGER history_is_deleted AFTER DELETE ON history
BEGIN
    INSERT INTO event_floor (one, major, minor) VALUES (1, OLD.seq, 0)
        ON CONFLICT (one) DO UPDATE SET major = excluded.major, minor = excluded.minor
     WHERE (major, minor) < (excluded.major, excluded.minor);
END;

CREATE TRIGGER run_history_is_deleted AFTER DELETE ON run_history
BEGIN
    INSERT INTO event_floor (one, major, minor) VALUES (1, OLD.behind, OLD.seq)
        ON CONFLICT (one) DO UPDATE SET major = excluded.major, minor = excluded.minor
     WHERE (major, minor) < (excluded.major, excluded.minor);
END;

CREATE UNIQUE INDEX run_request ON run (request) WHERE request IS NOT NULL;

CREATE TABLE workflow (  -- the registry: a name and a version for a definition that is kept
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definition (digest),
    runnable INTEGER NOT NULL CHECK (runnable IN (0, 1)),  -- the second verdict
    findings TEXT NOT NULL,  -- JSON: what was said about it when it was registered
    parameters TEXT NOT NULL,  -- JSON: what a request may or must give
    registered_at REAL NOT NULL,
    registered_by TEXT NOT NULL, sees TEXT, source TEXT NOT NULL DEFAULT '',
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

CREATE TABLE notebook (
    name TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    owner TEXT,
    deadline_at REAL,
    body TEXT NOT NULL DEFAULT '',
    updated_at REAL NOT NULL,
    CHECK ((owner IS NULL) = (deadline_at IS NULL)),
    CHECK (owner IS NULL OR epoch > 0)
) STRICT;

CREATE TABLE worker (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- 27 is worker-27; never used again
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started REAL NOT NULL,
    queues TEXT NOT NULL,  -- JSON array
    slots INTEGER NOT NULL CHECK (slots >= 1),
    cpu REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    gpu INTEGER NOT NULL,
    labels TEXT,  -- JSON array
    abilities TEXT NOT NULL,  -- JSON: which tasks it can execute
    registered_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    stopped_at REAL,
    trouble TEXT,  -- why it takes no tasks just now
    nodes INTEGER NOT NULL DEFAULT 1,
    buffer_bytes INTEGER NOT NULL DEFAULT 0
, flavours TEXT) STRICT;

CREATE INDEX worker_host ON worker (host, boot_id);

CREATE TABLE token (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('bearer', 'login', 'session')),
    parent INTEGER REFERENCES token (number) ON DELETE CASCADE,  -- ends with it
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),  -- SHA-256 of the secret
    scopes TEXT NOT NULL,  -- JSON array
    created_at REAL NOT NULL,
    expires_at REAL,
    used_at REAL,
    revoked_at REAL
, names TEXT NOT NULL DEFAULT '[]', person TEXT, source TEXT, groups TEXT) STRICT;

CREATE TABLE worker_token (  -- whose workers they are; a worker of a store itself has none
    worker INTEGER PRIMARY KEY REFERENCES worker (number) ON DELETE CASCADE,
    token INTEGER NOT NULL REFERENCES token (number) ON DELETE CASCADE
) STRICT;

CREATE TABLE broadcast (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    point TEXT NOT NULL,
    namespace TEXT NOT NULL,
    setting TEXT NOT NULL,
    value TEXT NOT NULL,
    place INTEGER NOT NULL,  -- the latest counts most
    PRIMARY KEY (run, point, namespace, setting)
) WITHOUT ROWID, STRICT;

CREATE TABLE outbox (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    place INTEGER NOT NULL,  -- within the batch
    body TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, batch, place)
) WITHOUT ROWID, STRICT;

CREATE TABLE withdrawn (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    task_seq INTEGER NOT NULL,
    PRIMARY KEY (run, task_seq)
) WITHOUT ROWID, STRICT;

CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    begins INTEGER NOT NULL,  -- the last entry that is older than the chain
    number INTEGER NOT NULL CHECK (number >= begins),  -- the last entry
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64)  -- of the last entry
) STRICT;

CREATE TRIGGER audit_is_chained BEFORE INSERT ON audit WHEN NEW.sha256 IS NULL
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit needs its hash');
END;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is only added to');
END;

CREATE TRIGGER audit_head_goes_on BEFORE UPDATE ON audit_head
  WHEN NEW.number <= OLD.number OR NEW.begins <> OLD.begins
BEGIN
    SELECT RAISE(ABORT, 'the audit is only added to');
END;

CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the audit is only added to');
END;

CREATE TABLE attempt_key (
    fingerprint TEXT PRIMARY KEY CHECK (length(fingerprint) = 64),
    created_at REAL NOT NULL,
    seen_at REAL  -- when a server with this key last said that it runs; none: all have stopped
) WITHOUT ROWID, STRICT;

CREATE TABLE "ready" (
    queue TEXT NOT NULL,
    delayed INTEGER NOT NULL,
    laned INTEGER NOT NULL DEFAULT 0,  -- it has a limit key, and its queue has lanes
    rank INTEGER NOT NULL,  -- minus priority
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
    nodes INTEGER NOT NULL DEFAULT 1,
    exclusive INTEGER NOT NULL DEFAULT 0,
    buffer_bytes INTEGER NOT NULL DEFAULT 0, flavours TEXT,
    PRIMARY KEY (queue, delayed, laned, rank, task_seq)
) WITHOUT ROWID, STRICT;

CREATE INDEX ready_due ON ready (queue, due_at) WHERE delayed;

CREATE INDEX ready_lane ON ready (queue, limit_key, rank, task_seq) WHERE laned AND delayed = 0;

CREATE INDEX lease_key ON lease (queue, limit_key) WHERE limit_key IS NOT NULL;

CREATE TABLE lane (  -- keys of which a task is ready
    key TEXT NOT NULL,
    queue TEXT NOT NULL,
    turn INTEGER NOT NULL,  -- the latest that it had; 0 in a queue that is not fair
    rank INTEGER NOT NULL,  -- of the first task
    task_seq INTEGER NOT NULL,  -- the first task
    closed INTEGER NOT NULL,  -- there is no room
    opens_at REAL,  -- when its rate gives it room again
    PRIMARY KEY (key, queue)
) WITHOUT ROWID, STRICT;

CREATE INDEX lane_heads ON lane (queue, turn, rank, task_seq) WHERE NOT closed;

CREATE INDEX lane_opens ON lane (queue, opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE lane_news (
    queue TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID, STRICT;

CREATE TRIGGER ready_came AFTER INSERT ON ready WHEN NEW.laned AND NOT NEW.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (NEW.queue, NEW.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER ready_is_due AFTER UPDATE OF delayed ON ready WHEN NEW.laned AND NOT NEW.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (NEW.queue, NEW.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER ready_went AFTER DELETE ON ready WHEN OLD.laned AND NOT OLD.delayed
BEGIN
    INSERT INTO lane_news (queue, key) VALUES (OLD.queue, OLD.limit_key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER lease_ended AFTER DELETE ON lease WHEN OLD.limit_key IS NOT NULL
BEGIN
    INSERT INTO lane_news (queue, key)
    SELECT name, OLD.limit_key FROM queue WHERE name = OLD.queue AND lanes
        ON CONFLICT DO NOTHING;
END;

CREATE TABLE run_values (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    point INTEGER NOT NULL,
    name TEXT NOT NULL,
    submit INTEGER NOT NULL CHECK (submit >= 0),  -- 0: set by hand before there was any
    flows TEXT NOT NULL,  -- JSON array
    body TEXT NOT NULL,  -- JSON object; '': it returned none
    PRIMARY KEY (run, point, name, submit)
) WITHOUT ROWID, STRICT;

CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;

CREATE INDEX task_of_no_run ON task (seq) WHERE run IS NULL;

CREATE TABLE run_version (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    version INTEGER NOT NULL CHECK (version >= 1),  -- 1: what it began with
    definition TEXT NOT NULL REFERENCES definition (digest),
    at REAL NOT NULL,
    who TEXT NOT NULL,  -- who reloaded it; '' for the first
    PRIMARY KEY (run, version)
) WITHOUT ROWID, STRICT;

CREATE INDEX run_version_definition ON run_version (definition);

CREATE VIEW step AS
SELECT seq, task_seq, at, signal, from_status, to_status, attempt, worker, progress FROM history;

INSERT INTO schema_version SELECT value, unixepoch('subsec') FROM json_each('[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27]');

INSERT INTO store_identity VALUES (lower(hex(randomblob(16))));

INSERT INTO audit_head VALUES (1, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000');
