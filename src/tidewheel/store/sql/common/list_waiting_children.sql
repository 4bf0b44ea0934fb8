-- Delete: runs that have not begun because they wait for this one.
SELECT child.name FROM tidewheel.run_need AS need JOIN tidewheel.run AS child ON child.number = need.run
 WHERE need.parent = :run AND child.batch = 0
 ORDER BY child.number LIMIT :count;
