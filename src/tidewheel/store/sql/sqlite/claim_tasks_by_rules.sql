-- Claim from a queue with aging or limits: looks at every ready task of the queue.
-- The last column is the priority with its aging: what is returned has no order here.
WITH candidate AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes, limit_key,
           CASE WHEN :aging AND -rank < 255
                THEN min(255, -rank + CAST(clock.now - ready_at AS INTEGER))
                ELSE -rank END AS aged
      FROM ready, (SELECT now_seconds() AS now) AS clock
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
), numbered AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes, limit_key, aged,
           row_number() OVER (PARTITION BY limit_key ORDER BY aged DESC, task_seq) AS of_key
      FROM candidate
), chosen AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes,
           row_number() OVER (ORDER BY aged DESC, task_seq) AS place
      FROM numbered
     WHERE limit_key IS NULL
        OR of_key <= coalesce(
               (SELECT rule.value ->> 'count'
                  FROM json_each(:by_key) AS rule
                 WHERE rule.value ->> 'key' = limit_key), :each_key)
     ORDER BY place
     LIMIT min(:count, :whole_queue)
), total AS (
    SELECT task_seq, sum(cpu) OVER earlier AS cpu, sum(memory_bytes) OVER earlier AS memory_bytes,
           sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes * 1.0) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM chosen
    WINDOW earlier AS (ORDER BY place)
)
UPDATE task
   SET status = 'running', attempt = attempt + 1, owner = :worker, progress = 0, due_at = NULL,
       updated_at = now_seconds()
  FROM total
 WHERE task.seq = total.task_seq AND round(total.cpu, 6) <= :cpu
   AND total.memory_bytes <= :memory_bytes AND total.gpu <= :gpu
   AND total.buffer_bytes <= :buffer_bytes AND total.company <= 1000000
RETURNING seq, id, queue, name, attempt, spec, command, handler,
          priority, timeout_seconds, max_termination_seconds, cpu,
          memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, limit_key, run,
          now_seconds() AS now,
          CASE WHEN :aging AND priority < 255
               THEN min(255, priority + CAST(now_seconds() - (
                        SELECT ready_at FROM ready
                         WHERE ready.queue = :queue AND delayed = 0 AND rank = -task.priority
                           AND task_seq = task.seq) AS INTEGER))
               ELSE priority END AS aged;
