-- Looking: the definitions that a run had, newest first; none for one that was never reloaded.
SELECT version, definition, at, who FROM tidewheel.run_version WHERE run = :run ORDER BY version DESC;
