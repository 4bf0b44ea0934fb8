-- List: a page of ready tasks, newest first.
SELECT task.seq FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
 WHERE ready.task_seq < :before AND (:queue::text IS NULL OR ready.queue = :queue::text)
   AND {task_filter}
 ORDER BY ready.task_seq DESC LIMIT :count;
