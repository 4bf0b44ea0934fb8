-- Home of the page: the pooled tasks at the newest points of some runs, those that are alike as one row.
-- A body leaves out what is not so.
WITH RECURSIVE {newest_points},
     alike AS (
    SELECT pool.run, pool.point, pool.name, pool.stage,
           (pool.body::json ->> 'missing') IS NOT NULL AS missing,
           (pool.body::json ->> 'waits') IS NOT NULL AS waits,
           (pool.body::json ->> 'released') IS NOT NULL AS released,
           (pool.body::json ->> 'held') IS NOT NULL AS held,
           pool.body::json ->> 'ended' AS ended
      FROM newest JOIN tidewheel.pool ON pool.run = newest.run AND pool.point = newest.point)
SELECT run, point, count(*) AS tasks, min(name COLLATE "C") AS first, stage, missing, waits, released, held, ended
  FROM alike
 GROUP BY run, point, stage, missing, waits, released, held, ended
 ORDER BY run, point, stage DESC, first;
