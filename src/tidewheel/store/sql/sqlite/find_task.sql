-- Everybody: the number of a task.
SELECT seq FROM task WHERE id = :id;
