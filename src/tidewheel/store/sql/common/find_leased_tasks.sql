-- List: a page of running or cancelling tasks, newest first.
SELECT task.seq FROM tidewheel.lease JOIN tidewheel.task ON task.seq = lease.task_seq
 WHERE task.status = :status AND lease.task_seq < :before
   AND {task_filter}
 ORDER BY lease.task_seq DESC LIMIT :count;
