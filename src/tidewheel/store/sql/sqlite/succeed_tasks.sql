-- Report: success of tasks without dependencies, the common case. :ends is [[id, attempt], …].
UPDATE task
   SET status = 'succeeded', progress = 1, held_key = NULL, updated_at = (SELECT now_seconds())
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS attempt FROM json_each(:ends)) AS done
 WHERE task.id = done.id AND task.status = 'running' AND task.attempt = done.attempt
   AND task.owner = :worker AND task.graph IS NULL
RETURNING id, seq, run;
