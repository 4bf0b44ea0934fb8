CREATE TABLE tidewheel.notebook (
    name text PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    owner text,
    deadline_at double precision,
    body text NOT NULL DEFAULT '',
    updated_at double precision NOT NULL,
    CHECK ((owner IS NULL) = (deadline_at IS NULL)),
    CHECK (owner IS NULL OR epoch > 0)
);
