-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
-- The lock of the task is enough: whoever moves a row of ready holds it. A row that moved since this
-- statement's snapshot is gone from its place, so the task is not taken.
-- Each task is looked up, whatever the planner believes: statistics of a moment when most tasks were not committed yet say that there is none.
WITH locked AS MATERIALIZED (
    SELECT ready.ctid AS row, ready.rank AS place, ready.task_seq, ready.cpu, ready.memory_bytes,
           ready.gpu, ready.exclusive, ready.buffer_bytes
      FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ANY (ARRAY[ready.task_seq])
     WHERE ready.queue = :queue AND NOT ready.delayed AND NOT ready.laned AND task.status = 'ready' AND {fits}
       AND {labels_fit_postgres}
     ORDER BY ready.rank, ready.task_seq
     LIMIT :count
       FOR UPDATE OF task SKIP LOCKED
), {take_locked}
SELECT {claimed_columns}, updated_at AS now
  FROM taken;
