-- Claim on PostgreSQL: lock the first that are ready and fit, if `term` says that the queue is open.
locked AS MATERIALIZED (
    SELECT ready.ctid AS row, ready.rank AS place, ready.task_seq, ready.cpu, ready.memory_bytes,
           ready.gpu, ready.exclusive, ready.buffer_bytes
      FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ANY (ARRAY[ready.task_seq])
     WHERE ready.queue = :queue AND NOT ready.delayed AND NOT ready.laned AND task.status = 'ready' AND {fits}
       AND (SELECT is_open FROM term)
       AND {labels_fit_postgres}
     ORDER BY ready.rank, ready.task_seq
     LIMIT :count
       FOR UPDATE OF task SKIP LOCKED
)
