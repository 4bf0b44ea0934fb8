-- Cancel by filter: tasks that have not ended, oldest first.
SELECT id, name, seq FROM tidewheel.task
 WHERE status IN ('waiting', 'ready', 'running') AND seq > :after
   AND (:any_status::boolean OR status = ANY (:statuses::text[]))
   AND {task_filter}
 ORDER BY seq LIMIT :count;
