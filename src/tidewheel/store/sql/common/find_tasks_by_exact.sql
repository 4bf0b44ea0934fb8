-- List: the tasks with exactly this id or this name, along their indexes.
SELECT seq FROM tidewheel.task
 WHERE (id = :exact::text OR (name IS NOT NULL AND name = :exact::text)) AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
