-- Delete: the tasks of a run, oldest first.
SELECT seq FROM tidewheel.task WHERE run = %(run)s ORDER BY seq LIMIT %(count)s;
