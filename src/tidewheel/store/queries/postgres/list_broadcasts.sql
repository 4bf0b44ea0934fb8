-- Scheduler: settings of tasks to come.
SELECT point, namespace, setting, value FROM tidewheel.broadcast
 WHERE run = %(run)s ORDER BY point, namespace, setting;
