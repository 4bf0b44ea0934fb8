-- Objects: it is there no more.
DELETE FROM tidewheel.buffer_object WHERE name = :name RETURNING name, facts, posted_at, posted_by;
