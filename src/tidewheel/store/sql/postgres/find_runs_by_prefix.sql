-- Find: runs whose names begin so, newest first.
SELECT number, name FROM tidewheel.run
 WHERE starts_with(name, :prefix::text) AND status <> 'deleted'
 ORDER BY number DESC LIMIT :count;
