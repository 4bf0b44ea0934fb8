-- Claim: what the worker's and the queue's rows say, and whether delayed tasks are due.
SELECT EXISTS (SELECT 1 FROM worker WHERE number = :worker_number AND stopped_at IS NULL),
       coalesce(paused, false), coalesce(aging, false),
       EXISTS (SELECT 1 FROM queue_limit WHERE queue = :queue),
       coalesce(fence_kill, false), coalesce(lease_seconds, 10.0),
       EXISTS (SELECT 1 FROM ready
                WHERE queue = :queue AND delayed AND due_at <= (SELECT now_seconds()))
  FROM (SELECT 1) AS one LEFT JOIN queue ON queue.name = :queue;
