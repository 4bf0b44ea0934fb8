-- List: tasks that are expected to be so short, newest first.
SELECT seq FROM task
 WHERE estimated_runtime_seconds IS NOT NULL AND estimated_runtime_seconds <= :runtime_max
   AND seq < :before
   AND (:any_status OR status IN (SELECT value FROM json_each(:statuses)))
   AND (:queue IS NULL OR queue = :queue)
   AND (:worker IS NULL OR owner = :worker)
   AND (:tag IS NULL OR tag = :tag)
   AND (:name IS NULL OR name = :name)
   AND (:runtime_max IS NULL OR estimated_runtime_seconds <= :runtime_max)
   AND (:memory_min IS NULL OR memory_bytes >= :memory_min)
 ORDER BY seq DESC LIMIT :count;
