-- Brings every store to one schema (SQLite). Migrations 1 to 3 were edited after they had landed, so a store may lack
-- columns of `worker`, `broadcast` and `token`, what happens to `worker_token` when a token goes, and an index.
-- SQLite adds no column only where it is missing, so these small tables are made anew in every store. A column that
-- may be missing is read in a subquery: where the table has none of that name, it is the one of the query around it.

CREATE TEMP TABLE kept_sequence AS
SELECT name, seq FROM sqlite_sequence WHERE name IN ('worker', 'token');

CREATE TEMP TABLE kept_worker AS
SELECT number, name, host, boot_id, pid, process_started, queues, slots, cpu, memory_bytes, gpu, labels,
       (SELECT abilities FROM worker AS own WHERE own.number = old.number) AS abilities,
       registered_at, seen_at, stopped_at,
       (SELECT trouble FROM worker AS own WHERE own.number = old.number) AS trouble,
       nodes, buffer_bytes
  FROM worker AS old, (SELECT '{"commands": true, "handlers": null, "bare": true}' AS abilities, NULL AS trouble) AS missing;

CREATE TEMP TABLE kept_token AS
SELECT number,
       (SELECT kind FROM token AS own WHERE own.number = old.number) AS kind,
       (SELECT parent FROM token AS own WHERE own.number = old.number) AS parent,
       name, digest, scopes, queues, workflows, created_at, expires_at, used_at, revoked_at
  FROM token AS old, (SELECT 'bearer' AS kind, NULL AS parent) AS missing;

CREATE TEMP TABLE kept_worker_token AS SELECT worker, token FROM worker_token;

CREATE TEMP TABLE kept_broadcast AS
SELECT run, point, namespace, setting, value,
       (SELECT place FROM broadcast AS own
         WHERE (own.run, own.point, own.namespace, own.setting)
             = (old.run, old.point, old.namespace, old.setting)) AS place
  FROM (SELECT run, point, namespace, setting, value,
               row_number() OVER (PARTITION BY run ORDER BY point, namespace, setting) AS place
          FROM broadcast) AS old;

DROP TABLE worker_token;  -- first: what refers to a table goes with its rows
DROP TABLE token;
DROP TABLE worker;
DROP TABLE broadcast;

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
) STRICT;

CREATE INDEX worker_host ON worker (host, boot_id);

CREATE TABLE token (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('bearer', 'login', 'session')),
    parent INTEGER REFERENCES token (number) ON DELETE CASCADE,  -- ends with it
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),  -- SHA-256 of the secret
    scopes TEXT NOT NULL,  -- JSON array
    queues TEXT NOT NULL,  -- JSON array of globs
    workflows TEXT NOT NULL,  -- JSON array of globs
    created_at REAL NOT NULL,
    expires_at REAL,
    used_at REAL,
    revoked_at REAL
) STRICT;

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

INSERT INTO worker SELECT * FROM kept_worker;
INSERT INTO token SELECT * FROM kept_token ORDER BY number;  -- a parent before those that end with it
INSERT INTO worker_token SELECT * FROM kept_worker_token;
INSERT INTO broadcast SELECT * FROM kept_broadcast;

-- A number that was given away is never given again, though its row may be gone.
DELETE FROM sqlite_sequence WHERE name IN ('worker', 'token');
INSERT INTO sqlite_sequence (name, seq) SELECT name, seq FROM kept_sequence;

DROP TABLE kept_sequence;
DROP TABLE kept_worker;
DROP TABLE kept_token;
DROP TABLE kept_worker_token;
DROP TABLE kept_broadcast;

CREATE INDEX IF NOT EXISTS memory_known ON memory (run, point, name) WHERE NOT forgotten;
