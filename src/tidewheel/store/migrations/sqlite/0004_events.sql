-- What followers of a store are told (SQLite): steps of tasks are in history, with their seq as place;
-- here is the same for runs, and how far back it reaches.

-- Append-only, written by the triggers below: no caller can forget it. Its place is behind the last
-- step of a task that there was. Names stand here because the run may be gone when this is read.
CREATE TABLE run_history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    behind INTEGER NOT NULL,  -- a seq of history
    at REAL NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    workflow TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    batch INTEGER NOT NULL
) STRICT;

CREATE INDEX run_history_place ON run_history (behind, seq);
CREATE INDEX run_history_run ON run_history (run);
CREATE INDEX run_history_deleted ON run_history (at) WHERE status = 'deleted';

-- The last place of which something was deleted; a reader that has not come so far has missed it.
CREATE TABLE event_floor (
    one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    major INTEGER NOT NULL,
    minor INTEGER NOT NULL
) STRICT;

CREATE TRIGGER run_is_told AFTER INSERT ON run
BEGIN
    INSERT INTO run_history (behind, at, run, name, workflow, queue, status, reason, batch)
    VALUES (coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'history'), 0), NEW.updated_at,
            NEW.number, NEW.name, NEW.workflow, NEW.queue, NEW.status, NEW.reason, NEW.batch);
END;

CREATE TRIGGER run_change_is_told AFTER UPDATE OF batch, status ON run
WHEN OLD.batch <> NEW.batch OR OLD.status <> NEW.status
BEGIN
    INSERT INTO run_history (behind, at, run, name, workflow, queue, status, reason, batch)
    VALUES (coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'history'), 0), NEW.updated_at,
            NEW.number, NEW.name, NEW.workflow, NEW.queue, NEW.status, NEW.reason, NEW.batch);
END;

-- What is left of a deleted run is that it was; after a month not even that.
CREATE TRIGGER run_is_forgotten AFTER DELETE ON run
BEGIN
    DELETE FROM run_history WHERE run = OLD.number AND status <> 'deleted';
    DELETE FROM run_history WHERE status = 'deleted' AND at < OLD.updated_at - 2592000;
END;

CREATE TRIGGER history_is_deleted AFTER DELETE ON history
BEGIN
    INSERT INTO event_floor (one, major, minor) VALUES (1, OLD.seq, 0)
        ON CONFLICT (one) DO UPDATE SET major = excluded.major, minor = excluded.minor
     WHERE (major, minor) < (excluded.major, excluded.minor);
END;

CREATE TRIGGER run_history_is_deleted AFTER DELETE ON run_history
BEGIN
    INSERT INTO event_floor (one, major, minor) VALUES (1, OLD.behind, OLD.seq)
        ON CONFLICT (one) DO UPDATE SET major = excluded.major, minor = excluded.minor
     WHERE (major, minor) < (excluded.major, excluded.minor);
END;
