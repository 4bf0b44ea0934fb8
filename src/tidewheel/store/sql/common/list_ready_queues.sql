-- Claims by pattern: queues with ready tasks, each with the highest priority; a few steps of the index for each.
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM tidewheel.ready
    UNION ALL
    SELECT (SELECT min(ready.queue) FROM tidewheel.ready WHERE ready.queue > found.queue)
      FROM found
     WHERE found.queue IS NOT NULL
), ranked (queue, rank) AS (
    SELECT queue,
           (SELECT min(first.rank)
              FROM (SELECT min(rank) AS rank FROM tidewheel.ready
                     WHERE ready.queue = found.queue AND delayed = false AND laned = false
                    UNION ALL
                    SELECT min(rank) FROM tidewheel.ready
                     WHERE ready.queue = found.queue AND delayed = false AND laned = true
                    UNION ALL
                    SELECT min(rank) FROM tidewheel.ready
                     WHERE ready.queue = found.queue AND delayed = true AND laned = false
                    UNION ALL
                    SELECT min(rank) FROM tidewheel.ready
                     WHERE ready.queue = found.queue AND delayed = true AND laned = true) AS first)
      FROM found
     WHERE queue IS NOT NULL
)
SELECT queue, -rank FROM ranked;
