-- Verify P19: what is active in the pool of a live run has a submission that has not ended.
-- An end that the scheduler has not heard of does not count yet. In ids points are texts: so it is
-- counted by name and submit number.
WITH active AS (
    SELECT pool.run, run.name AS run_name, '/' || pool.name || '/' || pool.submit AS ending,
           count(*) AS pooled, min(pool.point) AS point
      FROM pool JOIN run ON run.number = pool.run
     WHERE pool.stage BETWEEN 1 AND 3 AND run.status <> 'deleted'
       AND run.options ->> 'mode' = 'live'
     GROUP BY pool.run, run.name, pool.name, pool.submit
), counted AS (
    SELECT run, run_name, ending, pooled, point,
           (SELECT count(*) FROM task
             WHERE task.run = active.run AND substr(task.id, -length(ending)) = ending
               AND (task.status NOT IN ('succeeded', 'failed', 'cancelled')
                    OR EXISTS (SELECT 1 FROM event
                                WHERE event.run = active.run AND event.task_id = task.id
                                  AND event.kind = 'over'))) AS live
      FROM active
)
SELECT run_name || '/' || point || ending,
       pooled || ' active in the pool, ' || live || ' in the queue or running'
  FROM counted WHERE live < pooled ORDER BY run, point, ending;
