-- Claim: what the worker's and the queue's rows say, and in how many seconds the next delayed task is due.
SELECT EXISTS (SELECT 1 FROM tidewheel.worker WHERE number = :worker_number AND stopped_at IS NULL),
       coalesce(paused, false), coalesce(aging, false),
       EXISTS (SELECT 1 FROM tidewheel.queue_limit WHERE queue = :queue),
       coalesce(fence_kill, false), coalesce(lease_seconds, 10.0),
       (SELECT min(due_at) FROM tidewheel.ready WHERE queue = :queue AND delayed) - tidewheel.now_seconds()
  FROM (SELECT 1) AS one LEFT JOIN tidewheel.queue ON queue.name = :queue;
