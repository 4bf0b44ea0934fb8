-- Claim: tasks that were chosen by the rules of their queue, as many of the first as fit together.
-- The lock of the task is enough, as in claim_tasks. Each row is looked up, whatever the planner believes.
WITH term AS (
    SELECT :lease_seconds::float8 AS lease_seconds
), locked AS MATERIALIZED (
    SELECT found.row, line.place, found.task_seq, found.cpu, found.memory_bytes, found.gpu, found.exclusive,
           found.buffer_bytes
      FROM json_to_recordset(:chosen::json) AS line (place integer, laned boolean, rank bigint, seq bigint)
     CROSS JOIN LATERAL (
               SELECT ready.ctid AS row, ready.task_seq, ready.cpu, ready.memory_bytes, ready.gpu, ready.exclusive,
                      ready.buffer_bytes
                 FROM tidewheel.ready
                WHERE ready.queue = :queue AND NOT ready.delayed AND ready.laned = line.laned
                  AND ready.rank = line.rank AND ready.task_seq = line.seq
               OFFSET 0) AS found
      JOIN tidewheel.task ON task.seq = ANY (ARRAY[found.task_seq]) AND task.status = 'ready'
     ORDER BY line.place
       FOR UPDATE OF task SKIP LOCKED
), {take_locked}
SELECT {claimed_columns}, updated_at AS now
  FROM taken;
