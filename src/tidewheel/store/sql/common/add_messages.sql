-- Report: what jobs said.
INSERT INTO tidewheel.output (task_seq, attempt, number, at, text, output)
SELECT seq, attempt, number, tidewheel.now_seconds(), text, output
  FROM json_to_recordset(:messages::json) AS said (
           seq bigint, attempt integer, number integer, text text, output text);
