-- Blocks: which runs wait for which, and for what.
INSERT INTO tidewheel.run_need (run, parent, condition)
SELECT run, parent, condition
  FROM json_to_recordset(:needs::json) AS need (run bigint, parent bigint, condition text);
