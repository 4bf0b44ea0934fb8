-- Server: how many tasks the pool of each run holds, for those who watch.
SELECT run, count(*) FROM tidewheel.pool GROUP BY run;
