-- Submit, cascade: tasks that became ready can be claimed, delayed ones when they are due.
INSERT INTO tidewheel.ready (queue, delayed, rank, task_seq, due_at, ready_at, cpu, memory_bytes, gpu, labels,
                   has_command, handler, limit_key, nodes, exclusive, buffer_bytes)
SELECT queue, coalesce(due_at > clock.now, false), -priority, seq, due_at, clock.now, cpu, memory_bytes,
       gpu, labels, command IS NOT NULL, handler, limit_key,
       nodes, exclusive, buffer_bytes
  FROM tidewheel.task, (SELECT tidewheel.now_seconds() AS now) AS clock
 WHERE seq = ANY (:seqs::bigint[]) AND status = 'ready';
