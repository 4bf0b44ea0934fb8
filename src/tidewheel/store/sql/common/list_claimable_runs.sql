-- Scheduler: runs whose own one died, and those that wait for any and for no other run; by priority, then age.
-- Those that are tasks of a run come first: a run that is driven waits for them.
SELECT {run_columns}
  FROM tidewheel.run
 WHERE ((deadline_at <= tidewheel.now_seconds()
         AND status IN ('created', 'running', 'paused', 'waiting for release', 'stalled', 'stopping'))
        OR (given IS NOT NULL AND status <> 'deleted' AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())))
   AND (:under::text IS NULL OR substr(name, 1, length(:under::text)) = :under::text)
   AND {may_begin}
 ORDER BY parent IS NULL, priority DESC, number LIMIT :count;
