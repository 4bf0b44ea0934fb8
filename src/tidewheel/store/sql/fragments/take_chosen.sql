-- Claim on SQLite: as many of the first that were chosen as fit together.
-- One that is exclusive weighs more than all of a claim: as the first it is taken alone, else it ends it.
total AS (
    SELECT task_seq, sum(cpu) OVER earlier AS cpu, sum(memory_bytes) OVER earlier AS memory_bytes,
           sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes * 1.0) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM chosen
    WINDOW earlier AS (ORDER BY place, task_seq)
)
UPDATE task
   SET status = 'running', attempt = attempt + 1, owner = :worker, progress = 0, due_at = NULL,
       updated_at = (SELECT now_seconds())
  FROM total
 WHERE task.seq = total.task_seq AND round(total.cpu, 6) <= :cpu
   AND total.memory_bytes <= :memory_bytes AND total.gpu <= :gpu
   AND total.buffer_bytes <= :buffer_bytes AND total.company <= 1000000
RETURNING {claimed_columns}, updated_at AS now
