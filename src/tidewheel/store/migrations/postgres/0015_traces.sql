-- Traces and keys (PostgreSQL): the audit is a chain, each entry with the hash of itself and the one before; who signs jobs' tokens.

ALTER TABLE tidewheel.audit ADD COLUMN sha256 text CHECK (length(sha256) = 64);  -- none: older than the chain
ALTER TABLE tidewheel.audit ALTER COLUMN number DROP IDENTITY;  -- numbers of a chain have no gaps

CREATE TABLE tidewheel.audit_head (
    one integer PRIMARY KEY CHECK (one = 1),
    begins bigint NOT NULL,  -- the last entry that is older than the chain
    number bigint NOT NULL CHECK (number >= begins),  -- the last entry
    sha256 text NOT NULL CHECK (length(sha256) = 64)  -- of the last entry
);

INSERT INTO tidewheel.audit_head (one, begins, number, sha256)
SELECT 1, coalesce(max(number), 0), coalesce(max(number), 0), repeat('0', 64)
  FROM tidewheel.audit;

CREATE FUNCTION tidewheel.refuse_audit_unchained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry of the audit needs its hash' USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER audit_is_chained BEFORE INSERT ON tidewheel.audit
    FOR EACH ROW WHEN (NEW.sha256 IS NULL) EXECUTE FUNCTION tidewheel.refuse_audit_unchained();

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON tidewheel.audit
    FOR EACH ROW EXECUTE FUNCTION tidewheel.refuse_audit_change();

CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON tidewheel.audit
    FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.refuse_audit_change();

CREATE TRIGGER audit_head_goes_on BEFORE UPDATE ON tidewheel.audit_head
    FOR EACH ROW WHEN (NEW.number <= OLD.number OR NEW.begins <> OLD.begins)
    EXECUTE FUNCTION tidewheel.refuse_audit_change();

CREATE TRIGGER audit_head_stays BEFORE DELETE ON tidewheel.audit_head
    FOR EACH ROW EXECUTE FUNCTION tidewheel.refuse_audit_change();

CREATE TRIGGER audit_head_is_not_emptied BEFORE TRUNCATE ON tidewheel.audit_head
    FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.refuse_audit_change();

-- By which key servers sign the tokens of jobs: of the key itself there is nothing here.
CREATE TABLE tidewheel.attempt_key (
    fingerprint text PRIMARY KEY CHECK (length(fingerprint) = 64),
    created_at double precision NOT NULL,
    seen_at double precision  -- when a server with this key last said that it runs; none: all have stopped
);
