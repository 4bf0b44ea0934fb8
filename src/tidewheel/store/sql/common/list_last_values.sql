-- End of a run that is a task: for each of its tasks the point whose values count, and how long these are.
SELECT point, name, size
  FROM (SELECT point, name, length(body) AS size,
               row_number() OVER (PARTITION BY name ORDER BY point DESC, submit DESC) AS place
          FROM tidewheel.run_values WHERE run = :run) AS known
 WHERE place = 1 ORDER BY name LIMIT :count;
