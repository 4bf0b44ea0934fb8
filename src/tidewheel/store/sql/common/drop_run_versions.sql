-- Scheduler: of the definitions that a run had, the newest stay.
DELETE FROM tidewheel.run_version
 WHERE run = :run AND version <= (SELECT max(version) FROM tidewheel.run_version WHERE run = :run) - :count::bigint;
