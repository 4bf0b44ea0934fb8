-- List: a page of waiting tasks, newest first.
SELECT seq FROM tidewheel.task
 WHERE (graph IS NOT NULL OR NOT armed) AND status = 'waiting' AND seq < :before
   AND {task_filter}
 ORDER BY seq DESC LIMIT :count;
