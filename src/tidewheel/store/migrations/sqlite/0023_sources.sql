-- A registered version knows where its files were fetched from (SQLite).

ALTER TABLE workflow ADD COLUMN source TEXT NOT NULL DEFAULT '';  -- JSON: url, ref, commit, folder, sha256; empty: from a folder, or sent as files
