-- Report: what attempts that ended well hand to those after them, unless they have told something before; answers with the tasks.
INSERT INTO tidewheel.task_values (task_seq, attempt, body)
SELECT seq, attempt, body
  FROM json_to_recordset(:values::json) AS told (seq bigint, attempt bigint, body text)
 WHERE true
    ON CONFLICT (task_seq) DO NOTHING
RETURNING task_seq;
