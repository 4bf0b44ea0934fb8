-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
WITH chosen AS (
    SELECT rank AS place, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes
      FROM ready
     WHERE queue = :queue AND delayed = 0 AND {fits}
       AND (labels IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(labels) AS asked
                 WHERE asked.value NOT IN (SELECT value FROM json_each(:labels))))
     ORDER BY rank, task_seq
     LIMIT :count
), {take_chosen};
