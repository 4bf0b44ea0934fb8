-- Everybody: what happened to runs, in this order.
INSERT INTO event (
           at, run, kind, task_id, attempt, text, output, status, error_code, error, exit_status,
           command)
SELECT now_seconds(), value ->> 'run', value ->> 'kind', value ->> 'task_id', value ->> 'attempt',
       value ->> 'text', value ->> 'output', value ->> 'status', value ->> 'error_code',
       value ->> 'error', value ->> 'exit_status', value ->> 'command'
  FROM json_each(:events);
