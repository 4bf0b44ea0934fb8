-- Claim: which of these tasks need one that has told values.
SELECT DISTINCT dependency.child
  FROM tidewheel.dependency JOIN tidewheel.task_values ON task_values.task_seq = dependency.parent
 WHERE dependency.child = ANY (:seqs::bigint[]);
