-- Queues: what has not ended, and how long the oldest has been ready.
SELECT queue, 'ready', count(*),
       max(CASE WHEN NOT delayed OR due_at <= (SELECT tidewheel.now_seconds())
                THEN (SELECT tidewheel.now_seconds()) - ready_at END)
  FROM tidewheel.ready
 GROUP BY queue
UNION ALL
SELECT task.queue, task.status, count(*), NULL
  FROM tidewheel.lease JOIN tidewheel.task ON task.seq = lease.task_seq
 GROUP BY task.queue, task.status
UNION ALL
SELECT queue, status, count(*), NULL
  FROM tidewheel.task
 WHERE (graph IS NOT NULL OR NOT armed) AND status = 'waiting'
 GROUP BY queue, status;
