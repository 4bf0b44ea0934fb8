-- Find: runs whose names begin so, newest first; those that are tasks of a run only if asked for.
SELECT number, name FROM tidewheel.run
 WHERE starts_with(name, :prefix::text) AND status <> 'deleted' AND (:nested::boolean OR parent IS NULL)
 ORDER BY number DESC LIMIT :count;
