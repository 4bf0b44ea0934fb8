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
