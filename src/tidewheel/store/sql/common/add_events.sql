-- Everybody: what happened to runs, in this order.
INSERT INTO tidewheel.event (
           at, run, kind, task_id, attempt, text, output, status, error_code, error, exit_status,
           command, told)
SELECT tidewheel.now_seconds(), run, kind, task_id, attempt, text, output, status, error_code, error, exit_status,
       command, told
  FROM json_to_recordset(:events::json) AS new (
           run bigint, kind text, task_id text, attempt integer, text text, output text,
           status text, error_code text, error text, exit_status integer, command bigint, told text);
