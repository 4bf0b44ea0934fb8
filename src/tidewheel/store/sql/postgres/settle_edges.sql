-- Cascade: these edges are met or dead.
-- By place: of two indexes that both fit, the planner takes the wrong one as soon as its statistics
-- are old, and a fan of 10,000 becomes quadratic.
UPDATE tidewheel.dependency
   SET state = edge.state
  FROM json_to_recordset(:edges::json) AS edge (place tid, state text)
 WHERE dependency.ctid = edge.place;
