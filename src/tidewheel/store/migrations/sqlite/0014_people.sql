-- Tokens of people who signed in say who they are (SQLite).

ALTER TABLE token ADD COLUMN person TEXT;  -- null: a token that was made, not signed in for
ALTER TABLE token ADD COLUMN source TEXT;  -- how the person signed in
ALTER TABLE token ADD COLUMN groups TEXT;  -- JSON array: in which groups the person was then
