-- Scheduler: how many runs with names that begin so are tasks of a run and have not ended.
SELECT count(*) FROM tidewheel.run
 WHERE parent IS NOT NULL AND substr(name, 1, length(:under::text)) = :under::text
   AND (deadline_at IS NOT NULL OR given IS NOT NULL);
