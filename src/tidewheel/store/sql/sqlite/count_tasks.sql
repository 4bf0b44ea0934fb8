-- Queues: what has not ended, and how long the oldest has been ready.
SELECT queue, 'ready', count(*),
       max(CASE WHEN NOT delayed OR due_at <= (SELECT now_seconds())
                THEN (SELECT now_seconds()) - ready_at END)
  FROM ready
 GROUP BY queue
UNION ALL
SELECT task.queue, task.status, count(*), NULL
  FROM lease JOIN task ON task.seq = lease.task_seq
 GROUP BY task.queue, task.status
UNION ALL
SELECT queue, status, count(*), NULL
  FROM task
 WHERE (graph IS NOT NULL OR NOT armed) AND status = 'waiting'
 GROUP BY queue, status;
