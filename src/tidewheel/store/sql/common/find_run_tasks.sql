-- Delete: the tasks of a run, oldest first.
SELECT seq FROM tidewheel.task WHERE run = :run ORDER BY seq LIMIT :count;
