-- Scheduler: tasks of a run that can be claimed, or could be if somebody drove it.
SELECT seq FROM tidewheel.task WHERE run = %(run)s AND status = 'ready' ORDER BY seq;
