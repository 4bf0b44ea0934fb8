-- Runs that any scheduler is asked to drive (PostgreSQL).

ALTER TABLE tidewheel.run ADD COLUMN given text;  -- JSON: options anew; NULL: no scheduler is asked
ALTER TABLE tidewheel.run ADD COLUMN request text;  -- for whom it was made: the same again makes no second

CREATE UNIQUE INDEX run_request ON tidewheel.run (request) WHERE request IS NOT NULL;
