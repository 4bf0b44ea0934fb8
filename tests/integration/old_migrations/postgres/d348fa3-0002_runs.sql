CREATE TABLE tidewheel.definition (
    digest text PRIMARY KEY,
    workflow text NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    variables text NOT NULL,
    files text NOT NULL,
    saved_at double precision NOT NULL
);
CREATE TABLE tidewheel.run (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    workflow text NOT NULL,
    definition text NOT NULL REFERENCES tidewheel.definition (digest),
    options text NOT NULL,
    folder text NOT NULL,
    queue text NOT NULL,
    status text NOT NULL CHECK (status IN
        ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping', 'stopped',
         'completed', 'error', 'deleted')),
    reason text NOT NULL DEFAULT '',
    host text,
    boot_id text,
    pid integer,
    process_started double precision,
    deadline_at double precision,
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    batch bigint NOT NULL DEFAULT 0 CHECK (batch >= 0),
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    ended_at double precision,
    CHECK ((host IS NULL) = (deadline_at IS NULL)),
    CHECK ((host IS NULL) = (boot_id IS NULL) AND (host IS NULL) = (pid IS NULL)
        AND (host IS NULL) = (process_started IS NULL)),
    CHECK (host IS NULL OR epoch > 0)
);
CREATE INDEX run_workflow ON tidewheel.run (workflow, number);
CREATE INDEX run_definition ON tidewheel.run (definition);
CREATE TABLE tidewheel.pool (
    run bigint NOT NULL,
    point bigint NOT NULL,
    name text NOT NULL,
    stage bigint NOT NULL CHECK (stage BETWEEN 0 AND 4),
    submit bigint NOT NULL CHECK (submit >= 0),
    flows text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run, point, name)
);
CREATE TABLE tidewheel.memory (
    run bigint NOT NULL,
    point bigint NOT NULL,
    name text NOT NULL,
    submits bigint NOT NULL CHECK (submits >= 0),
    forgotten boolean NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run, point, name)
);
CREATE TABLE tidewheel.run_fact (
    run bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('run', 'flow', 'chain', 'absolute')),
    key text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run, kind, key)
);
CREATE TABLE tidewheel.timer (
    run bigint NOT NULL,
    point bigint NOT NULL,
    name text NOT NULL,
    timer text NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (run, point, name, timer)
);
CREATE TABLE tidewheel.event (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    at double precision NOT NULL,
    kind text NOT NULL CHECK (kind IN ('started', 'said', 'over', 'command')),
    task_id text,
    attempt integer,
    text text,
    output text,
    status text CHECK (status IN ('succeeded', 'failed', 'cancelled')),
    error_code text,
    error text,
    exit_status integer,
    command bigint,
    CHECK ((kind = 'command') = (command IS NOT NULL)),
    CHECK ((kind = 'command') = (task_id IS NULL)),
    CHECK ((kind = 'over') = (status IS NOT NULL))
);
CREATE INDEX event_run ON tidewheel.event (run, seq);
CREATE TABLE tidewheel.command (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    at double precision NOT NULL,
    who text NOT NULL,
    body text NOT NULL,
    answered_at double precision,
    answer text,
    refused text,
    CHECK ((answered_at IS NULL) = (answer IS NULL))
);
CREATE INDEX command_run ON tidewheel.command (run, number);
CREATE TABLE tidewheel.broadcast (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    point text NOT NULL,
    namespace text NOT NULL,
    setting text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (run, point, namespace, setting)
);
CREATE TABLE tidewheel.xtrigger (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    signature text NOT NULL,
    result text NOT NULL,
    PRIMARY KEY (run, signature)
);
CREATE TABLE tidewheel.run_change (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    batch bigint NOT NULL,
    at double precision NOT NULL,
    changes text NOT NULL,
    PRIMARY KEY (run, batch)
);
ALTER TABLE tidewheel.task ADD COLUMN run bigint;
CREATE INDEX task_run ON tidewheel.task (run, seq) WHERE run IS NOT NULL;
