-- Claim by rules: the first tasks that fit, of each open lane among the first, and of those without a lane; by levels of priority.
WITH open AS MATERIALIZED (
    SELECT key, turn, rank, task_seq
      FROM lane
     WHERE queue = :queue AND NOT closed
     ORDER BY turn, rank, task_seq
     LIMIT :lanes
), level AS MATERIALIZED (
    SELECT value ->> 'lowest' AS lowest, value ->> 'highest' AS highest FROM json_each(:levels)
)
SELECT lane.key, lane.turn, lane.rank AS head_rank, lane.task_seq AS head_seq,
       {running_of_key} AS running,
       (SELECT tokens FROM bucket WHERE bucket.queue = :queue AND bucket.key = lane.key) AS tokens,
       (SELECT refilled_at FROM bucket WHERE bucket.queue = :queue AND bucket.key = lane.key) AS refilled_at,
       found.rank, found.task_seq, found.ready_at
  FROM open AS lane CROSS JOIN level LEFT JOIN ready AS found
    ON found.queue = :queue AND found.delayed = 0 AND found.laned = 1
   AND (found.rank, found.task_seq) IN (
           SELECT ready.rank, ready.task_seq
             FROM ready INDEXED BY ready_lane
            WHERE {stands_in_lane}
              AND ready.rank BETWEEN level.lowest AND level.highest AND {fits} AND {labels_fit_sqlite}
            ORDER BY ready.rank, ready.task_seq
            LIMIT :count)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, found.rank, found.task_seq, found.ready_at
  FROM level CROSS JOIN ready AS found
 WHERE found.queue = :queue AND found.delayed = 0 AND found.laned = 0
   AND (found.rank, found.task_seq) IN (
           SELECT ready.rank, ready.task_seq
             FROM ready
            WHERE ready.queue = :queue AND ready.delayed = 0 AND ready.laned = 0
              AND ready.rank BETWEEN level.lowest AND level.highest AND {fits} AND {labels_fit_sqlite}
            ORDER BY ready.rank, ready.task_seq
            LIMIT :count);
