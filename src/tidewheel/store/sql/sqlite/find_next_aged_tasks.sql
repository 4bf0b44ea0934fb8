-- Peek: what would be claimed next in a queue with aging.
SELECT task_seq FROM ready, (SELECT now_seconds() AS now) AS clock
 WHERE queue = :queue AND (NOT delayed OR due_at <= clock.now)
 ORDER BY CASE WHEN -rank < 255 THEN min(255, -rank + CAST(clock.now - ready_at AS INTEGER)) ELSE -rank END DESC,
          task_seq
 LIMIT :count;
