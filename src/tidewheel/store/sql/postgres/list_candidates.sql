-- Claim by rules: lanes are put right, which this statement does not see in their table; then the first tasks that fit, of each open lane among the first, and of those without a lane; by levels of priority.
WITH {lanes_put_right}, still AS MATERIALIZED (
    SELECT key, turn, rank, task_seq
      FROM tidewheel.lane
     WHERE queue = :queue AND NOT closed AND key NOT IN (SELECT key FROM told)
     ORDER BY turn, rank, task_seq
     LIMIT :lanes
), open AS MATERIALIZED (
    SELECT key, turn, rank, task_seq
      FROM (SELECT key, turn, rank, task_seq FROM still
            UNION ALL SELECT key, turn, rank, task_seq FROM opened
            UNION ALL SELECT key, turn, rank, task_seq FROM put WHERE NOT closed) AS one
     ORDER BY turn, rank, task_seq
     LIMIT :lanes
), level AS MATERIALIZED (
    SELECT lowest, highest FROM json_to_recordset(:levels::json) AS given (lowest bigint, highest bigint)
)
SELECT lane.key, lane.turn, lane.rank AS head_rank, lane.task_seq AS head_seq,
       {running_of_key} AS running,
       bucket.tokens, bucket.refilled_at, found.rank, found.task_seq, found.ready_at
  FROM open AS lane CROSS JOIN level
  LEFT JOIN tidewheel.bucket ON bucket.queue = :queue AND bucket.key = lane.key
  LEFT JOIN LATERAL (
           SELECT ready.rank, ready.task_seq, ready.ready_at
             FROM tidewheel.ready
            WHERE {stands_in_lane}
              AND ready.rank BETWEEN level.lowest AND level.highest AND {fits}
              AND {labels_fit_postgres}
            ORDER BY ready.rank, ready.task_seq
            LIMIT :count) AS found ON true
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, found.rank, found.task_seq, found.ready_at
  FROM level CROSS JOIN LATERAL (
           SELECT ready.rank, ready.task_seq, ready.ready_at
             FROM tidewheel.ready
            WHERE ready.queue = :queue AND NOT ready.delayed AND NOT ready.laned
              AND ready.rank BETWEEN level.lowest AND level.highest AND {fits}
              AND {labels_fit_postgres}
            ORDER BY ready.rank, ready.task_seq
            LIMIT :count) AS found;
