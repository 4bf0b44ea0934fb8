-- List: a page of failed or cancelled tasks, newest first.
SELECT task.seq FROM history JOIN task ON task.seq = history.task_seq
 WHERE history.to_status IN ('failed', 'cancelled') AND history.to_status = :status
   AND history.task_seq < :before
   AND (:queue IS NULL OR task.queue = :queue)
   AND (:worker IS NULL OR task.owner = :worker)
   AND (:tag IS NULL OR task.tag = :tag)
   AND (:name IS NULL OR task.name = :name)
   AND (:runtime_max IS NULL OR task.estimated_runtime_seconds <= :runtime_max)
   AND (:memory_min IS NULL OR task.memory_bytes >= :memory_min)
 ORDER BY history.task_seq DESC LIMIT :count;
