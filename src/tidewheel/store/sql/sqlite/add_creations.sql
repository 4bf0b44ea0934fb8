-- Submit: the first entry in the history of new tasks.
INSERT INTO history (task_seq, at, to_status, attempt, progress)
SELECT seq, created_at, status, 0, 0
  FROM task
 WHERE seq IN (SELECT value FROM json_each(:seqs))
 ORDER BY seq;
