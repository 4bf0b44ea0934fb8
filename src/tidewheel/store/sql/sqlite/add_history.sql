-- Cascade: one entry per step.
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT value ->> 'seq', now_seconds(), value ->> 'signal', value ->> 'from_status',
       value ->> 'to_status', value ->> 'attempt', value ->> 'worker', value ->> 'progress'
  FROM json_each(:changes);
