-- Scheduler: settings of tasks to come, in the order in which they were given.
SELECT point, namespace, setting, value FROM broadcast
 WHERE run = :run ORDER BY place;
