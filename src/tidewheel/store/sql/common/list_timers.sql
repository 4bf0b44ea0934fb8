-- Scheduler: what is to happen at a time, soonest first.
SELECT point, name, timer, at FROM tidewheel.timer WHERE run = :run ORDER BY at, point, name, timer;
