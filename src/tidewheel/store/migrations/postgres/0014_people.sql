-- Tokens of people who signed in say who they are (PostgreSQL).

ALTER TABLE tidewheel.token ADD COLUMN person text;  -- null: a token that was made, not signed in for
ALTER TABLE tidewheel.token ADD COLUMN source text;  -- how the person signed in
ALTER TABLE tidewheel.token ADD COLUMN groups text;  -- JSON array: in which groups the person was then
