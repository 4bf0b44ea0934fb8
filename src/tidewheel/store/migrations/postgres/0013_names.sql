-- Tokens are for names (PostgreSQL): the two lists of earlier versions become one. A run knows what its jobs may see.

ALTER TABLE tidewheel.token ADD COLUMN names text NOT NULL DEFAULT '[]';  -- JSON array of patterns

-- Of an old token both lists, which are read as the patterns that they stand for.
UPDATE tidewheel.token SET names = '{"queues": ' || queues || ', "workflows": ' || workflows || '}';

ALTER TABLE tidewheel.token DROP COLUMN queues;

ALTER TABLE tidewheel.token DROP COLUMN workflows;

ALTER TABLE tidewheel.run ADD COLUMN sees text;  -- JSON array of patterns; null: everything
