-- Tokens are for names (SQLite): the two lists of earlier versions become one. A run knows what its jobs may see.

ALTER TABLE token ADD COLUMN names TEXT NOT NULL DEFAULT '[]';  -- JSON array of patterns

-- Of an old token both lists, which are read as the patterns that they stand for.
UPDATE token SET names = '{"queues": ' || queues || ', "workflows": ' || workflows || '}';

ALTER TABLE token DROP COLUMN queues;

ALTER TABLE token DROP COLUMN workflows;

ALTER TABLE run ADD COLUMN sees TEXT;  -- JSON array of patterns; null: everything
