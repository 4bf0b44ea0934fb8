-- Scheduler: what is to happen at a time, soonest first.
SELECT point, name, timer, at FROM timer WHERE run = :run ORDER BY at, point, name, timer;
