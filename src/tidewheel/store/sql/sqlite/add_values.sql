-- Report: what attempts that ended well hand to those after them.
INSERT INTO task_values (task_seq, attempt, body)
SELECT value ->> 'seq', value ->> 'attempt', value ->> 'body' FROM json_each(:values);
