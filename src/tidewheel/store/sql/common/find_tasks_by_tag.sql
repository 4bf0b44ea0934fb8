-- List: a page of one tag, newest first, along its index.
SELECT seq FROM tidewheel.task
 WHERE tag IS NOT NULL AND tag = :tag::text AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
