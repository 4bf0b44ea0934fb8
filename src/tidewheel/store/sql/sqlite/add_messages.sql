-- Report: what jobs said.
INSERT INTO output (task_seq, attempt, number, at, text, output)
SELECT value ->> 'seq', value ->> 'attempt', value ->> 'number', now_seconds(), value ->> 'text',
       value ->> 'output'
  FROM json_each(:messages);
