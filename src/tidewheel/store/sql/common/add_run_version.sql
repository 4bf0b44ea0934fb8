-- Scheduler: the definition with which a reload lets a run go on, and who asked for that.
INSERT INTO tidewheel.run_version (run, version, definition, at, who)
SELECT run.number, 1 + (SELECT max(version) FROM tidewheel.run_version WHERE run = :run), :definition::text, tidewheel.now_seconds(),
       coalesce((SELECT who FROM tidewheel.command WHERE number = :command::bigint AND run = :run), '')
  FROM tidewheel.run WHERE number = :run AND definition <> :definition;
