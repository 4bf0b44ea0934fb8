-- List: a page of running or cancelling tasks, newest first.
SELECT task.seq FROM lease JOIN task ON task.seq = lease.task_seq
 WHERE task.status = :status AND lease.task_seq < :before
   AND (:queue IS NULL OR task.queue = :queue)
   AND (:worker IS NULL OR task.owner = :worker)
   AND (:tag IS NULL OR task.tag = :tag)
   AND (:name IS NULL OR task.name = :name)
   AND (:runtime_max IS NULL OR task.estimated_runtime_seconds <= :runtime_max)
   AND (:memory_min IS NULL OR task.memory_bytes >= :memory_min)
 ORDER BY lease.task_seq DESC LIMIT :count;
