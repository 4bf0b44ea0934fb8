-- List: a page of ready tasks, newest first.
SELECT task.seq FROM ready JOIN task ON task.seq = ready.task_seq
 WHERE ready.task_seq < :before AND (:queue IS NULL OR ready.queue = :queue)
   AND (:queue IS NULL OR task.queue = :queue)
   AND (:worker IS NULL OR task.owner = :worker)
   AND (:tag IS NULL OR task.tag = :tag)
   AND (:name IS NULL OR task.name = :name)
   AND (:runtime_max IS NULL OR task.estimated_runtime_seconds <= :runtime_max)
   AND (:memory_min IS NULL OR task.memory_bytes >= :memory_min)
 ORDER BY ready.task_seq DESC LIMIT :count;
