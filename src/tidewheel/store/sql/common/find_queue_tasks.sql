-- List: a page of the tasks that are no jobs of runs, newest first, along their index.
SELECT seq FROM tidewheel.task
 WHERE run IS NULL AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
