-- Find: runs whose names begin so, newest first; those that are tasks of a run only if asked for.
SELECT number, name FROM run
 WHERE substr(name, 1, length(:prefix)) = :prefix AND status <> 'deleted' AND (:nested OR parent IS NULL)
 ORDER BY number DESC LIMIT :count;
