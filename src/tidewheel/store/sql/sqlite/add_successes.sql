-- Report: success in the history of tasks.
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'succeed', 'running', 'succeeded', attempt, owner, 1
  FROM json_each(:seqs) CROSS JOIN task ON task.seq = value;
