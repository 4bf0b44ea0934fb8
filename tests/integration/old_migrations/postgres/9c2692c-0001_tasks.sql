CREATE SCHEMA IF NOT EXISTS tidewheel;
CREATE FUNCTION tidewheel.now_seconds() RETURNS double precision
    LANGUAGE sql STABLE AS $$ SELECT extract(epoch FROM statement_timestamp())::double precision $$;
CREATE TABLE tidewheel.store_identity (
    id text NOT NULL
);
INSERT INTO tidewheel.store_identity (id) VALUES (gen_random_uuid()::text);
CREATE TABLE tidewheel.queue (
    name text PRIMARY KEY,
    paused boolean NOT NULL DEFAULT false,
    aging boolean NOT NULL DEFAULT false,
    fence_kill boolean NOT NULL DEFAULT false,
    lease_seconds double precision NOT NULL DEFAULT 10 CHECK (lease_seconds > 0)
);
CREATE TABLE tidewheel.queue_limit (
    queue text NOT NULL REFERENCES tidewheel.queue (name) ON DELETE CASCADE,
    key text NOT NULL,
    concurrency_max integer CHECK (concurrency_max >= 0),
    rate_max integer CHECK (rate_max >= 1),
    rate_seconds double precision NOT NULL CHECK (rate_seconds > 0),
    PRIMARY KEY (queue, key)
);
CREATE TABLE tidewheel.bucket (
    queue text NOT NULL,
    key text NOT NULL,
    tokens double precision NOT NULL,
    refilled_at double precision NOT NULL,
    PRIMARY KEY (queue, key)
);
CREATE TABLE tidewheel.worker (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    host text NOT NULL,
    boot_id text NOT NULL,
    pid integer NOT NULL,
    process_started double precision NOT NULL,
    queues text NOT NULL,
    slots integer NOT NULL CHECK (slots >= 1),
    cpu double precision NOT NULL,
    memory_bytes bigint NOT NULL,
    gpu integer NOT NULL,
    labels text,
    registered_at double precision NOT NULL,
    seen_at double precision NOT NULL,
    stopped_at double precision
);
CREATE INDEX worker_host ON tidewheel.worker (host, boot_id);
CREATE TABLE tidewheel.task (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    queue text NOT NULL,
    name text,
    spec text,
    command text,
    handler text,
    priority bigint NOT NULL CHECK (priority BETWEEN 0 AND 4294967295),
    status text NOT NULL CHECK (status IN
        ('waiting', 'ready', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')),
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    lapses integer NOT NULL DEFAULT 0 CHECK (lapses >= 0),
    max_retries integer NOT NULL CHECK (max_retries >= 0),
    retry text NOT NULL,
    max_lapses integer NOT NULL CHECK (max_lapses >= 0),
    timeout_seconds double precision CHECK (timeout_seconds > 0),
    estimated_runtime_seconds double precision CHECK (estimated_runtime_seconds > 0),
    max_termination_seconds double precision NOT NULL CHECK (max_termination_seconds >= 0),
    cpu double precision NOT NULL CHECK (cpu >= 0),
    memory_bytes bigint NOT NULL CHECK (memory_bytes >= 0),
    gpu integer NOT NULL CHECK (gpu >= 0),
    labels text,
    unique_key text,
    held_key text,
    limit_key text,
    tag text,
    armed boolean NOT NULL,
    executes boolean NOT NULL,
    graph bigint,
    owner text,
    progress double precision NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
    due_at double precision,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    digest text NOT NULL,
    CHECK ((owner IS NULL) = (status IN ('waiting', 'ready'))
        OR (owner IS NULL AND status IN ('succeeded', 'cancelled'))),
    CHECK (status <> 'succeeded' OR progress = 1),
    CHECK (status <> 'running' OR attempt > 0)
);
CREATE INDEX task_graph ON tidewheel.task (graph) WHERE graph IS NOT NULL;
CREATE INDEX task_waiting ON tidewheel.task (seq) WHERE graph IS NOT NULL OR NOT armed;
CREATE INDEX task_tag ON tidewheel.task (tag, seq) WHERE tag IS NOT NULL;
CREATE INDEX task_runtime ON tidewheel.task (estimated_runtime_seconds)
    WHERE estimated_runtime_seconds IS NOT NULL;
CREATE INDEX task_memory ON tidewheel.task (memory_bytes) WHERE memory_bytes > 0;
CREATE UNIQUE INDEX task_name ON tidewheel.task (name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX task_held_key ON tidewheel.task (queue, held_key) WHERE held_key IS NOT NULL;
CREATE TABLE tidewheel.ready (
    queue text NOT NULL,
    delayed boolean NOT NULL,
    rank bigint NOT NULL,
    task_seq bigint NOT NULL,
    due_at double precision,
    ready_at double precision NOT NULL,
    cpu double precision NOT NULL,
    memory_bytes bigint NOT NULL,
    gpu integer NOT NULL,
    labels text,
    has_command boolean NOT NULL,
    handler text,
    limit_key text,
    PRIMARY KEY (queue, delayed, rank, task_seq)
);
CREATE INDEX ready_due ON tidewheel.ready (queue, due_at) WHERE delayed;
CREATE TABLE tidewheel.lease (
    task_seq bigint PRIMARY KEY,
    attempt integer NOT NULL CHECK (attempt > 0),
    owner text NOT NULL,
    queue text NOT NULL,
    limit_key text,
    deadline_at double precision NOT NULL,
    lease_seconds double precision NOT NULL CHECK (lease_seconds > 0),
    claimed_at double precision NOT NULL,
    started_at double precision,
    progress double precision NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
    messages integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE tidewheel.attempt (
    task_seq bigint NOT NULL,
    attempt integer NOT NULL CHECK (attempt > 0),
    worker text NOT NULL,
    claimed_at double precision NOT NULL,
    started_at double precision,
    ended_at double precision NOT NULL,
    ended_by text NOT NULL,
    exit_status integer,
    error_code text,
    error_args text,
    error_description text,
    metrics text,
    PRIMARY KEY (task_seq, attempt)
);
CREATE TABLE tidewheel.dependency (
    parent bigint NOT NULL REFERENCES tidewheel.task (seq) ON DELETE CASCADE,
    child bigint NOT NULL REFERENCES tidewheel.task (seq) ON DELETE CASCADE,
    output text NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'met', 'dead')),
    PRIMARY KEY (parent, child, output),
    CHECK (parent <> child)
);
CREATE INDEX dependency_child ON tidewheel.dependency (child, state);
CREATE TABLE tidewheel.output (
    task_seq bigint NOT NULL REFERENCES tidewheel.task (seq) ON DELETE CASCADE,
    attempt integer NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    at double precision NOT NULL,
    text text NOT NULL,
    output text,
    PRIMARY KEY (task_seq, attempt, number)
);
CREATE TABLE tidewheel.usage (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_seq bigint NOT NULL REFERENCES tidewheel.task (seq) ON DELETE CASCADE,
    attempt integer NOT NULL,
    at double precision NOT NULL,
    memory_bytes bigint,
    cpu_percent double precision,
    gpu_percent double precision,
    gpu_memory_bytes bigint
);
CREATE INDEX usage_task ON tidewheel.usage (task_seq, seq);
CREATE TABLE tidewheel.history (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    task_seq bigint NOT NULL,
    at double precision NOT NULL,
    signal text,
    from_status text,
    to_status text NOT NULL,
    attempt integer NOT NULL,
    worker text,
    progress double precision NOT NULL,
    PRIMARY KEY (xid, seq),
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
);
CREATE INDEX history_task ON tidewheel.history (task_seq, seq);
CREATE INDEX history_ended ON tidewheel.history (at)
    WHERE to_status IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX history_unwell ON tidewheel.history (to_status, task_seq)
    WHERE to_status IN ('failed', 'cancelled');
ALTER TABLE tidewheel.task SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tidewheel.ready SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tidewheel.lease SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
