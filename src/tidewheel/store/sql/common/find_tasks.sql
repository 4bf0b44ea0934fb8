-- List: a page of all tasks, newest first.
SELECT seq FROM tidewheel.task
 WHERE seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
