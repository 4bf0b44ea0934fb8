-- Traces and keys (SQLite): the audit is a chain, each entry with the hash of itself and the one before; who signs jobs' tokens.

ALTER TABLE audit ADD COLUMN sha256 TEXT CHECK (length(sha256) = 64);  -- none: older than the chain

CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    begins INTEGER NOT NULL,  -- the last entry that is older than the chain
    number INTEGER NOT NULL CHECK (number >= begins),  -- the last entry
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64)  -- of the last entry
) STRICT;

INSERT INTO audit_head (one, begins, number, sha256)
SELECT 1, coalesce(max(number), 0), coalesce(max(number), 0), '0000000000000000000000000000000000000000000000000000000000000000'
  FROM audit;

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

-- By which key servers sign the tokens of jobs: of the key itself there is nothing here.
CREATE TABLE attempt_key (
    fingerprint TEXT PRIMARY KEY CHECK (length(fingerprint) = 64),
    created_at REAL NOT NULL,
    seen_at REAL  -- when a server with this key last said that it runs; none: all have stopped
) WITHOUT ROWID, STRICT;
