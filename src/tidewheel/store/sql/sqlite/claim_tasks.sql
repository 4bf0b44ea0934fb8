-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
-- One that is exclusive weighs more than all of a claim: as the first it is taken alone, else it ends it.
WITH candidate AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes
      FROM ready
     WHERE queue = :queue AND delayed = 0
       AND cpu <= :cpu AND memory_bytes <= :memory_bytes AND gpu <= :gpu
       AND buffer_bytes <= :buffer_bytes
       AND nodes <= CASE WHEN exclusive THEN :idle_nodes ELSE :nodes END
       AND (labels IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(labels) AS asked
                 WHERE asked.value NOT IN (SELECT value FROM json_each(:labels))))
       AND (NOT has_command OR :commands)
       AND (has_command OR handler IS NOT NULL OR :bare)
       AND (handler IS NULL OR :any_handler OR handler IN (SELECT value FROM json_each(:handlers)))
     ORDER BY rank, task_seq
     LIMIT :count
), total AS (
    SELECT task_seq, sum(cpu) OVER earlier AS cpu, sum(memory_bytes) OVER earlier AS memory_bytes,
           sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes * 1.0) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM candidate
    WINDOW earlier AS (ORDER BY rank, task_seq)
)
UPDATE task
   SET status = 'running', attempt = attempt + 1, owner = :worker, progress = 0, due_at = NULL,
       updated_at = (SELECT now_seconds())
  FROM total
 WHERE task.seq = total.task_seq AND round(total.cpu, 6) <= :cpu
   AND total.memory_bytes <= :memory_bytes AND total.gpu <= :gpu
   AND total.buffer_bytes <= :buffer_bytes AND total.company <= 1000000
RETURNING seq, id, queue, name, attempt, spec, command, handler,
          priority, timeout_seconds, max_termination_seconds, cpu,
          memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, limit_key, run,
          updated_at AS now;
