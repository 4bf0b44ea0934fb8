-- Find: runs whose names begin so, newest first.
SELECT number, name FROM run
 WHERE substr(name, 1, length(:prefix)) = :prefix AND status <> 'deleted'
 ORDER BY number DESC LIMIT :count;
