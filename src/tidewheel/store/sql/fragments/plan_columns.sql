-- Claim: what the worker's and the queue's rows say, and in how many seconds the next delayed task is due.
EXISTS (SELECT 1 FROM tidewheel.worker WHERE number = :worker_number AND stopped_at IS NULL)
           AS worker_known,
       coalesce(paused, false) AS paused, coalesce(aging, false) AS aging, coalesce(fair, false) AS fair,
       coalesce(lanes, false) AS lanes,
       EXISTS (SELECT 1 FROM tidewheel.queue_limit WHERE queue = :queue) AS limited,
       coalesce(fence_kill, false) AS fence_kill, coalesce(lease_seconds, 10.0) AS lease_seconds,
       (SELECT min(due_at) FROM tidewheel.ready WHERE queue = :queue AND delayed) - tidewheel.now_seconds()
           AS next_due_seconds, tidewheel.now_seconds() AS now
