-- Peek: what would be claimed next.
SELECT task_seq FROM tidewheel.ready
 WHERE queue = :queue AND (NOT delayed OR due_at <= (SELECT tidewheel.now_seconds()))
 ORDER BY rank, task_seq LIMIT :count;
