-- Home of the page: the tasks at the newest points of runs that have left the pool, those that ended alike as one.
-- A row of format 1 is an array, and is given as it is.
WITH RECURSIVE {newest_points},
     alike AS (
    SELECT memory.run, memory.point, memory.name,
           CASE WHEN memory.body LIKE '[%' THEN memory.body END AS old,
           memory.body::json ->> 'verdicts' AS verdicts,
           CASE WHEN (memory.body::json ->> 'verdicts') IS NULL THEN memory.body::json ->> 'made' END AS made,
           memory.submits > 0 AS submitted
      FROM newest JOIN tidewheel.memory ON memory.run = newest.run AND memory.point = newest.point
      LEFT JOIN tidewheel.pool
             ON pool.run = memory.run AND pool.point = memory.point AND pool.name = memory.name
     WHERE pool.name IS NULL)
SELECT run, point, count(*) AS tasks, min(name COLLATE "C") AS first, old, verdicts, made, submitted
  FROM alike
 GROUP BY run, point, old, verdicts, made, submitted
 ORDER BY run, point, first;
