-- Machines and buffer space that tasks ask for and workers offer (PostgreSQL).

ALTER TABLE tidewheel.task ADD COLUMN nodes integer NOT NULL DEFAULT 1 CHECK (nodes >= 1);
ALTER TABLE tidewheel.task ADD COLUMN exclusive boolean NOT NULL DEFAULT false;  -- nothing beside it
ALTER TABLE tidewheel.task ADD COLUMN buffer_bytes bigint NOT NULL DEFAULT 0 CHECK (buffer_bytes >= 0);

ALTER TABLE tidewheel.ready ADD COLUMN nodes integer NOT NULL DEFAULT 1;
ALTER TABLE tidewheel.ready ADD COLUMN exclusive boolean NOT NULL DEFAULT false;
ALTER TABLE tidewheel.ready ADD COLUMN buffer_bytes bigint NOT NULL DEFAULT 0;

ALTER TABLE tidewheel.worker ADD COLUMN nodes integer NOT NULL DEFAULT 1;
ALTER TABLE tidewheel.worker ADD COLUMN buffer_bytes bigint NOT NULL DEFAULT 0;
