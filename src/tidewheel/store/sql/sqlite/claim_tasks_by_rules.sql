-- Claim from a queue with aging or limits: looks at every ready task of the queue.
-- The last column is the priority with its aging: what is returned has no order here.
WITH candidate AS (
    SELECT rank, task_seq, {claim_terms},
           CASE WHEN :aging AND -rank < 255
                THEN min(255, -rank + CAST(clock.now - ready_at AS INTEGER))
                ELSE -rank END AS aged
      FROM ready, (SELECT now_seconds() AS now) AS clock
     WHERE queue = :queue AND delayed = 0 AND {fits}
       AND (labels IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(labels) AS asked
                 WHERE asked.value NOT IN (SELECT value FROM json_each(:labels))))
), {chosen_by_limits}, {take_chosen},
          CASE WHEN :aging AND priority < 255
               THEN min(255, priority + CAST(now_seconds() - (
                        SELECT ready_at FROM ready
                         WHERE ready.queue = :queue AND delayed = 0 AND rank = -task.priority
                           AND task_seq = task.seq) AS INTEGER))
               ELSE priority END AS aged;
