-- Home of the page: of some runs the newest points at which a task is known, so many of each run.
-- Points that hold very many tasks are fewer: what is counted has a bound.
newest (run, point, place, counted) AS (
    SELECT run.number,
           (SELECT max(there.point)
              FROM (SELECT max(memory.point) AS point FROM tidewheel.memory WHERE memory.run = run.number
                    UNION ALL SELECT max(pool.point) FROM tidewheel.pool WHERE pool.run = run.number) AS there),
           1, 0::bigint
      FROM tidewheel.run WHERE run.number = ANY (:runs::bigint[])
    UNION ALL
    SELECT newest.run,
           (SELECT max(there.point)
              FROM (SELECT max(memory.point) AS point FROM tidewheel.memory
                     WHERE memory.run = newest.run AND memory.point < newest.point
                    UNION ALL
                    SELECT max(pool.point) FROM tidewheel.pool
                     WHERE pool.run = newest.run AND pool.point < newest.point) AS there),
           newest.place + 1,
           newest.counted
           + (SELECT count(*) FROM tidewheel.memory WHERE memory.run = newest.run AND memory.point = newest.point)
           + (SELECT count(*) FROM tidewheel.pool WHERE pool.run = newest.run AND pool.point = newest.point)
      FROM newest
     WHERE newest.point IS NOT NULL AND newest.place < :points_max AND newest.counted < :tasks_max)
