-- Runs that any scheduler is asked to drive (SQLite).

ALTER TABLE run ADD COLUMN given TEXT;  -- JSON: options anew; NULL: no scheduler is asked
ALTER TABLE run ADD COLUMN request TEXT;  -- for whom it was made: the same again makes no second

CREATE UNIQUE INDEX run_request ON run (request) WHERE request IS NOT NULL;
