-- List: tasks that ask for at least so much memory, newest first.
SELECT seq FROM tidewheel.task
 WHERE memory_bytes > 0 AND memory_bytes >= :memory_bytes_min::bigint AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
