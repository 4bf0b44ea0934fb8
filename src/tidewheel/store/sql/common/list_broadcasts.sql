-- Scheduler: settings of tasks to come, in the order in which they were given.
SELECT point, namespace, setting, value FROM tidewheel.broadcast
 WHERE run = :run ORDER BY place;
