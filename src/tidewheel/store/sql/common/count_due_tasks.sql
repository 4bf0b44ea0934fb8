-- Home of the page: unfinished tasks with a late offset, by the time at which each is late. One that has ended (stage 4) is not.
SELECT timer.run, timer.point, timer.at, count(*) AS tasks
  FROM tidewheel.timer
  JOIN tidewheel.pool ON pool.run = timer.run AND pool.point = timer.point AND pool.name = timer.name AND pool.stage <> 4
 WHERE timer.run = ANY (:runs::bigint[]) AND timer.timer = 'late'
 GROUP BY timer.run, timer.point, timer.at
 ORDER BY timer.run, timer.point, timer.at;
