-- Monitor: leased tasks that nobody else is working on at this moment.
SELECT {state_columns}
  FROM tidewheel.task JOIN tidewheel.lease ON lease.task_seq = ANY (ARRAY[task.seq])
 WHERE task.id = ANY (:ids::text[])
 ORDER BY task.seq
   FOR UPDATE OF task, lease SKIP LOCKED;
