-- Blocks: which of these runs have tasks with a worker (stages 2, 3), in the queue (1), or waiting for a time or an object.
SELECT pool.run, max(CASE WHEN pool.stage IN (2, 3) THEN 1 ELSE 0 END) AS leased,
       max(CASE WHEN pool.stage = 1 THEN 1 ELSE 0 END) AS queued,
       max(CASE WHEN timer.run IS NOT NULL THEN 1 ELSE 0 END) AS timed,
       max(CASE WHEN pool.stage = 0 AND substr(pool.name, 1, 7) = 'object@' THEN 1 ELSE 0 END) AS objects
  FROM tidewheel.pool AS pool
  LEFT JOIN tidewheel.timer AS timer ON timer.run = pool.run AND timer.point = pool.point AND timer.name = pool.name
 WHERE pool.run = ANY (:runs::bigint[])
 GROUP BY pool.run;
