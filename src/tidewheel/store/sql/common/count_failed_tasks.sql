-- Queues: in which the newest tasks that failed are, along the index of steps.
SELECT task.queue, count(*)
  FROM (SELECT task_seq FROM tidewheel.history
         WHERE to_status IN ('failed', 'cancelled') AND to_status = 'failed'
         ORDER BY task_seq DESC LIMIT :count) AS newest
  JOIN tidewheel.task ON task.seq = newest.task_seq
 GROUP BY task.queue;
