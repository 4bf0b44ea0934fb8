-- Scheduler: settings of tasks to come.
SELECT point, namespace, setting, value FROM broadcast
 WHERE run = :run ORDER BY point, namespace, setting;
