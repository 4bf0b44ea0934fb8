-- Report: all that attempts have told by now, in place of what the task told before.
INSERT INTO tidewheel.task_values (task_seq, attempt, body)
SELECT seq, attempt, body
  FROM json_to_recordset(:values::json) AS told (seq bigint, attempt bigint, body text)
 WHERE true
    ON CONFLICT (task_seq) DO UPDATE SET attempt = excluded.attempt, body = excluded.body;
