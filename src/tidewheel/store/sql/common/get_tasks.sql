-- Everybody who looks: tasks as people see them.
{task_view}
 WHERE task.seq = ANY (:seqs::bigint[]);
