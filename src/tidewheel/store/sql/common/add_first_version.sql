-- Scheduler: what a run began with, kept when it is first reloaded. A reload that changes nothing leaves no row.
INSERT INTO tidewheel.run_version (run, version, definition, at, who)
SELECT number, 1, definition, created_at, '' FROM tidewheel.run
 WHERE number = :run AND definition <> :definition
   AND NOT EXISTS (SELECT 1 FROM tidewheel.run_version WHERE run = :run);
