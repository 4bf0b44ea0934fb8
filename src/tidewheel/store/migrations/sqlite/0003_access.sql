-- Who may speak to a server, what they did, and what they were answered (SQLite).

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
) STRICT;

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
