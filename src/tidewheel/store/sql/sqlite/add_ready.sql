-- Submit, cascade: tasks that became ready can be claimed, delayed ones when they are due.
INSERT INTO ready (queue, delayed, rank, task_seq, due_at, ready_at, cpu, memory_bytes, gpu, labels,
                   has_command, handler, limit_key, nodes, exclusive, buffer_bytes)
SELECT queue, coalesce(due_at > clock.now, false), -priority, seq, due_at, clock.now, cpu, memory_bytes,
       gpu, labels, command IS NOT NULL, handler, limit_key,
       nodes, exclusive, buffer_bytes
  FROM task, (SELECT now_seconds() AS now) AS clock
 WHERE seq IN (SELECT value FROM json_each(:seqs)) AND status = 'ready';
