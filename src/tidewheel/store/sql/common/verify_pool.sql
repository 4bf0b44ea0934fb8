-- Verify P1: tasks of the pool belong to a run that is there, and are known there.
SELECT pool.run || '/' || pool.point || '/' || pool.name,
       CASE WHEN run.number IS NULL THEN 'in the pool of a run that is not there'
            WHEN pool.stage NOT BETWEEN 0 AND 4 THEN 'in the pool at stage ' || pool.stage
            ELSE 'in the pool with submit number ' || pool.submit || ', but '
                 || memory.submits || ' was given before' END
  FROM tidewheel.pool
  LEFT JOIN tidewheel.run ON run.number = pool.run
  LEFT JOIN tidewheel.memory ON memory.run = pool.run AND memory.point = pool.point
                  AND memory.name = pool.name
 WHERE run.number IS NULL OR pool.stage NOT BETWEEN 0 AND 4
    OR pool.submit < memory.submits  -- which is put down when a task leaves the pool
 ORDER BY pool.run, pool.point, pool.name;
