-- Remove edges: whatever the output.
DELETE FROM tidewheel.dependency
 USING json_to_recordset(:edges::json) AS gone (parent bigint, child bigint)
 WHERE dependency.parent = gone.parent AND dependency.child = gone.child;
