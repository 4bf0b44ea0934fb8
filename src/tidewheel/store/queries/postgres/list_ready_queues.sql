-- Claims by pattern: which queues hold ready tasks, one step of the index for each of them.
WITH RECURSIVE found (queue) AS (
    SELECT min(queue) FROM tidewheel.ready
    UNION ALL
    SELECT (SELECT min(ready.queue) FROM tidewheel.ready WHERE ready.queue > found.queue)
      FROM found
     WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL;
