-- Verify P19: what is active in the pool of a live run has a submission that has not ended.
-- An end that the scheduler has not heard of does not count yet. In ids points are texts: so it is
-- counted by name and submit number.
WITH active AS (
    SELECT pool.run, run.name AS run_name, '/' || pool.name || '/' || pool.submit AS ending,
           count(*) AS pooled, min(pool.point) AS point
      FROM tidewheel.pool JOIN tidewheel.run ON run.number = pool.run
     WHERE pool.stage BETWEEN 1 AND 3 AND run.status <> 'deleted'
       AND run.options::json ->> 'mode' = 'live'
     GROUP BY pool.run, run.name, pool.name, pool.submit
), live AS MATERIALIZED (
    SELECT run, id FROM tidewheel.task
     WHERE run IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')
    UNION  -- a run that is a task of another is called as its submission, with a zero more perhaps
    SELECT parent, rtrim(name, '0123456789') || CAST(substr(name, length(rtrim(name, '0123456789')) + 1) AS integer)
      FROM tidewheel.run WHERE parent IS NOT NULL AND (deadline_at IS NOT NULL OR given IS NOT NULL)
    UNION
    SELECT run, task_id FROM tidewheel.event WHERE kind = 'over'
), counted AS (
    SELECT run, run_name, ending, pooled, point,
           (SELECT count(*) FROM live
             WHERE live.run = active.run AND substr(live.id, length(live.id) - length(ending) + 1) = ending) AS found
      FROM active
)
SELECT run_name || '/' || point || ending,
       pooled || ' active in the pool, ' || found || ' in the queue or running'
  FROM counted WHERE found < pooled ORDER BY run, point, ending;
