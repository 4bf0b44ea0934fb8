-- Report: what attempts that ended well hand to those after them.
INSERT INTO tidewheel.task_values (task_seq, attempt, body)
SELECT seq, attempt, body
  FROM json_to_recordset(:values::json) AS told (seq bigint, attempt bigint, body text);
