-- Claim: one entry in the history of each task just claimed.
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, updated_at, 'claim', 'ready', 'running', attempt, owner, 0
  FROM json_each(:seqs) CROSS JOIN task ON task.seq = value;
