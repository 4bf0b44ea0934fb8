-- Claims by pattern: queues with ready tasks, each with the highest priority; a few steps of the index for each.
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM tidewheel.ready
    UNION ALL
    SELECT (SELECT min(ready.queue) FROM tidewheel.ready WHERE ready.queue > found.queue)
      FROM found
     WHERE found.queue IS NOT NULL
), ranked (queue, now, later) AS (
    SELECT queue,
           (SELECT min(rank) FROM tidewheel.ready WHERE ready.queue = found.queue AND delayed = false),
           (SELECT min(rank) FROM tidewheel.ready WHERE ready.queue = found.queue AND delayed = true)
      FROM found
     WHERE queue IS NOT NULL
)
SELECT queue, -coalesce(CASE WHEN now > later THEN later END, now, later) FROM ranked;
