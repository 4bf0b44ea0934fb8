-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
WITH chosen AS (
    SELECT rank AS place, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes
      FROM ready
     WHERE queue = :queue AND delayed = 0 AND laned = 0 AND {fits} AND {labels_fit_sqlite}
     ORDER BY rank, task_seq
     LIMIT :count
), {take_chosen};
