-- Looking: what batches changed, oldest first.
SELECT batch, at, changes FROM tidewheel.run_change
 WHERE run = :run AND batch > :after ORDER BY batch LIMIT :count;
