-- Claim from a queue with aging or limits: looks at every ready task of the queue.
-- It answers in the order of priority with its aging.
WITH candidate AS (
    SELECT rank, task_seq, {claim_terms},
           CASE WHEN :aging::boolean AND -rank < 255
                THEN least(255, -rank + floor(clock.now - ready_at))
                ELSE -rank END AS aged
      FROM tidewheel.ready, (SELECT tidewheel.now_seconds() AS now) AS clock
     WHERE queue = :queue AND NOT delayed AND {fits}
       AND (ready.labels IS NULL OR ready.labels::jsonb <@ :labels::jsonb)
), {chosen_by_limits}, locked AS MATERIALIZED (
    SELECT ready.ctid AS row, chosen.place, ready.task_seq, ready.cpu, ready.memory_bytes,
           ready.gpu, ready.exclusive, ready.buffer_bytes
      FROM chosen
      JOIN tidewheel.ready ON ready.queue = :queue AND NOT ready.delayed
                          AND ready.rank = chosen.rank AND ready.task_seq = chosen.task_seq
      JOIN tidewheel.task ON task.seq = ready.task_seq
     ORDER BY chosen.place
       FOR UPDATE OF ready, task SKIP LOCKED
), {take_locked}
SELECT {claimed_columns}, updated_at AS now
  FROM taken
 ORDER BY place;
