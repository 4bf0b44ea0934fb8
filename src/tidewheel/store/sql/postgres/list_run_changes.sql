-- Looking: what batches changed, oldest first.
SELECT batch, at, changes FROM tidewheel.run_change
 WHERE run = %(run)s AND batch > %(after)s ORDER BY batch LIMIT %(count)s;
