-- Verify T10: a task waits exactly while a dependency is open or it is not armed.
SELECT task.id,
       CASE WHEN task.status = 'waiting' THEN 'waiting for nothing'
            ELSE task.status || ' with an open dependency' END
  FROM tidewheel.task
 WHERE (task.status = 'waiting'
        AND NOT EXISTS (SELECT 1 FROM tidewheel.dependency WHERE child = task.seq AND state = 'open')
        AND (task.armed OR EXISTS (SELECT 1 FROM tidewheel.dependency WHERE child = task.seq)))
    OR (task.status IN ('ready', 'running', 'cancelling')
        AND EXISTS (SELECT 1 FROM tidewheel.dependency WHERE child = task.seq AND state = 'open'))
 ORDER BY task.seq;
