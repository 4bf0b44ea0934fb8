-- List: tasks that are expected to be so short, newest first.
SELECT seq FROM tidewheel.task
 WHERE estimated_runtime_seconds IS NOT NULL AND estimated_runtime_seconds <= :estimated_runtime_seconds_max::float8
   AND seq < :before
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
