CREATE TABLE token (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
    scopes TEXT NOT NULL,
    queues TEXT NOT NULL,
    workflows TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    used_at REAL,
    revoked_at REAL
) STRICT;
CREATE TABLE worker_token (
    worker INTEGER PRIMARY KEY REFERENCES worker (number) ON DELETE CASCADE,
    token INTEGER NOT NULL REFERENCES token (number)
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
