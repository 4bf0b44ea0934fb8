-- Submit, add edges: who waits for whom; an edge that is there stays as it is.
INSERT INTO tidewheel.dependency (parent, child, output, state)
SELECT parent, child, output, state
  FROM json_to_recordset(:edges::json) AS edge (parent bigint, child bigint, output text, state text)
 WHERE true
    ON CONFLICT DO NOTHING;
