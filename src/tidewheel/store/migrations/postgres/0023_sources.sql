-- A registered version knows where its files were fetched from (PostgreSQL).

ALTER TABLE tidewheel.workflow ADD COLUMN source text NOT NULL DEFAULT '';  -- JSON: url, ref, commit, folder, sha256; empty: from a folder, or sent as files
