-- Everybody who decides: the facts about tasks that were locked before.
SELECT {state_columns}
  FROM tidewheel.task LEFT JOIN tidewheel.lease ON lease.task_seq = ANY (ARRAY[task.seq])
 WHERE task.seq = ANY (:seqs::bigint[])
 ORDER BY task.seq;
