-- List: a page of failed or cancelled tasks, newest first.
SELECT task.seq FROM tidewheel.history JOIN tidewheel.task ON task.seq = history.task_seq
 WHERE history.to_status IN ('failed', 'cancelled') AND history.to_status = :status
   AND history.task_seq < :before
   AND {task_filter}
 ORDER BY history.task_seq DESC LIMIT :count;
