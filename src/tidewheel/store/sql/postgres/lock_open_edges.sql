-- Cascade: the edges that wait for these tasks, and where they are.
SELECT parent, child, output, ctid::text FROM tidewheel.dependency
 WHERE parent = ANY (:parents::bigint[]) AND state = 'open'
 ORDER BY parent, child, output;
