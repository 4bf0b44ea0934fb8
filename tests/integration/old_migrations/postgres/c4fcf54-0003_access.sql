CREATE TABLE tidewheel.token (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    digest text NOT NULL UNIQUE CHECK (length(digest) = 64),
    scopes text NOT NULL,
    queues text NOT NULL,
    workflows text NOT NULL,
    created_at double precision NOT NULL,
    expires_at double precision,
    used_at double precision,
    revoked_at double precision
);
CREATE TABLE tidewheel.worker_token (
    worker bigint PRIMARY KEY REFERENCES tidewheel.worker (number) ON DELETE CASCADE,
    token bigint NOT NULL REFERENCES tidewheel.token (number)
);
CREATE TABLE tidewheel.audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL,
    token bigint,
    who text NOT NULL,
    client text NOT NULL,
    verb text NOT NULL,
    target text NOT NULL,
    status integer NOT NULL,
    correlation text NOT NULL
);
CREATE FUNCTION tidewheel.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is only added to' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON tidewheel.audit
    FOR EACH ROW EXECUTE FUNCTION tidewheel.refuse_audit_change();
CREATE TABLE tidewheel.idempotency (
    token bigint NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (token, key)
);
CREATE INDEX idempotency_at ON tidewheel.idempotency (at);
