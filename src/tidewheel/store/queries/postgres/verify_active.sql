-- Verify P19: each active task of a live run's pool has a submission that has not ended, or whose end
-- its scheduler has not heard of yet. Points are texts in ids: it is counted by name and number.
WITH active AS (
    SELECT pool.run, run.name AS run_name, '/' || pool.name || '/' || pool.submit AS ending,
           count(*) AS pooled, min(pool.point) AS point
      FROM tidewheel.pool JOIN tidewheel.run ON run.number = pool.run
     WHERE pool.stage BETWEEN 1 AND 3 AND run.status <> 'deleted'
       AND run.options::json ->> 'mode' = 'live'
     GROUP BY pool.run, run.name, pool.name, pool.submit
), counted AS (
    SELECT run, run_name, ending, pooled, point,
           (SELECT count(*) FROM tidewheel.task
             WHERE task.run = active.run AND right(task.id, length(ending)) = ending
               AND (task.status NOT IN ('succeeded', 'failed', 'cancelled')
                    OR EXISTS (SELECT 1 FROM tidewheel.event
                                WHERE event.run = active.run AND event.task_id = task.id
                                  AND event.kind = 'over'))) AS live
      FROM active
)
SELECT run_name || '/' || point || ending,
       pooled || ' active in the pool, ' || live || ' in the queue or running'
  FROM counted WHERE live < pooled ORDER BY run, point, ending;
