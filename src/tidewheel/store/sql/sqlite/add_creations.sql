-- Submit: the first entry in the history of new tasks, in the order of :seqs.
INSERT INTO history (task_seq, at, to_status, attempt, progress)
SELECT seq, created_at, status, 0, 0
  FROM json_each(:seqs) CROSS JOIN task ON task.seq = value;
