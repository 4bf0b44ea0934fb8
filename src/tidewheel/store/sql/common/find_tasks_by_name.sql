-- List: the task of this name, along its index.
SELECT seq FROM tidewheel.task
 WHERE name IS NOT NULL AND name = :name::text AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
