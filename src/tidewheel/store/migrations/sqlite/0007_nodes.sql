-- Machines and buffer space that tasks ask for and workers offer (SQLite).

ALTER TABLE task ADD COLUMN nodes INTEGER NOT NULL DEFAULT 1 CHECK (nodes >= 1);
ALTER TABLE task ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0 CHECK (exclusive IN (0, 1));  -- nothing beside it
ALTER TABLE task ADD COLUMN buffer_bytes INTEGER NOT NULL DEFAULT 0 CHECK (buffer_bytes >= 0);

ALTER TABLE ready ADD COLUMN nodes INTEGER NOT NULL DEFAULT 1;
ALTER TABLE ready ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ready ADD COLUMN buffer_bytes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE worker ADD COLUMN nodes INTEGER NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN buffer_bytes INTEGER NOT NULL DEFAULT 0;
