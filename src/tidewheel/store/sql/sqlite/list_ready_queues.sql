-- Claims by pattern: queues with ready tasks, each with the highest priority; a few steps of the index for each.
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM ready
    UNION ALL
    SELECT (SELECT min(ready.queue) FROM ready WHERE ready.queue > found.queue)
      FROM found
     WHERE found.queue IS NOT NULL
), ranked (queue, now, later) AS (
    SELECT queue,
           (SELECT min(rank) FROM ready WHERE ready.queue = found.queue AND delayed = 0),
           (SELECT min(rank) FROM ready WHERE ready.queue = found.queue AND delayed = 1)
      FROM found
     WHERE queue IS NOT NULL
)
SELECT queue, -min(coalesce(now, later), coalesce(later, now)) FROM ranked;
