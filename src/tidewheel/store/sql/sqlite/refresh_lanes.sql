-- Claim by rules: the heads of these keys, and whether there is room.
INSERT INTO lane (queue, key, turn, rank, task_seq, closed)
SELECT :queue, lane.key, (SELECT turns FROM queue WHERE name = :queue),
       (SELECT rank FROM ready INDEXED BY ready_lane
         WHERE {stands_in_lane}
         ORDER BY rank, task_seq LIMIT 1),
       (SELECT task_seq FROM ready INDEXED BY ready_lane
         WHERE {stands_in_lane}
         ORDER BY rank, task_seq LIMIT 1),
       {is_full}
  FROM (SELECT value AS key FROM json_each(:keys)) AS lane
 WHERE EXISTS (SELECT 1 FROM ready INDEXED BY ready_lane
                WHERE {stands_in_lane})
    ON CONFLICT (key, queue) DO UPDATE
   SET rank = excluded.rank, task_seq = excluded.task_seq, closed = excluded.closed, opens_at = NULL;
