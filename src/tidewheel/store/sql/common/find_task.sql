-- Everybody: the number of a task.
SELECT seq FROM tidewheel.task WHERE id = :id;
