-- Peek: what would be claimed next in a queue with aging.
SELECT task_seq FROM tidewheel.ready, (SELECT tidewheel.now_seconds() AS now) AS clock
 WHERE queue = :queue AND (NOT delayed OR due_at <= clock.now)
 ORDER BY CASE WHEN -rank < 255 THEN least(255, -rank + floor(clock.now - ready_at)) ELSE -rank END DESC,
          task_seq
 LIMIT :count;
