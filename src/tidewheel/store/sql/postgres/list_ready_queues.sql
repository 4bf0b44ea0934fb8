-- Claims by pattern: queues with ready tasks, each with the highest priority; a few steps of the index for each.
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM tidewheel.ready
    UNION ALL
    SELECT (SELECT min(ready.queue) FROM tidewheel.ready WHERE ready.queue > found.queue)
      FROM found
     WHERE found.queue IS NOT NULL
), ranked (queue, now, later) AS (
    SELECT queue,
           (SELECT min(rank) FROM tidewheel.ready WHERE ready.queue = found.queue AND NOT delayed),
           (SELECT min(rank) FROM tidewheel.ready WHERE ready.queue = found.queue AND delayed)
      FROM found
     WHERE queue IS NOT NULL
)
SELECT queue, -least(now, later) FROM ranked;
