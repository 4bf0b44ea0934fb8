-- Scheduler: tasks of a run that can be claimed, or could be if somebody drove it.
SELECT seq FROM task WHERE run = :run AND status = 'ready' ORDER BY seq;
