-- Submit, add edges: tasks enter a graph.
-- "= ANY (ARRAY[…])": see extend_leases.
UPDATE tidewheel.task SET graph = member.graph
  FROM json_to_recordset(:tasks::json) AS member (seq bigint, graph bigint)
 WHERE task.seq = ANY (ARRAY[member.seq]);
