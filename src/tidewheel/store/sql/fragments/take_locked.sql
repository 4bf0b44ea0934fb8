-- Claim on PostgreSQL: as many of the first that were locked as fit together, with leases and history.
-- `term` has the length of the leases. A task is found by its seq, not by the place that was locked: one that was amended after the snapshot of this statement has
-- another place, which the snapshot does not see, and would stay ready without a row in ready.
-- One that is exclusive weighs more than all of a claim: as the first it is taken alone, else it ends it.
total AS (
    SELECT locked.row, locked.place, sum(cpu) OVER earlier AS cpu,
           sum(memory_bytes::float8) OVER earlier AS memory_bytes, sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes::float8) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM locked
    WINDOW earlier AS (ORDER BY place, task_seq)
), gone AS (
    DELETE FROM tidewheel.ready USING total
     WHERE ready.ctid = total.row
       AND (total.cpu <= :cpu OR round(total.cpu::numeric, 6) <= :cpu)
       AND total.memory_bytes <= :memory_bytes AND total.gpu <= :gpu
       AND total.buffer_bytes <= :buffer_bytes AND total.company <= 1000000
    RETURNING ready.task_seq, total.place
), taken AS (
    UPDATE tidewheel.task
       SET status = 'running', attempt = attempt + 1, owner = :worker, progress = 0,
           due_at = NULL, updated_at = (SELECT tidewheel.now_seconds())
      FROM gone
     WHERE task.seq = ANY (ARRAY[gone.task_seq])
    RETURNING {task.claimed_columns}, task.owner, task.updated_at, gone.place
), leased AS (
    {lease_of} taken
), told AS (
    INSERT INTO tidewheel.history
           (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
    SELECT seq, updated_at, 'claim', 'ready', 'running', attempt, owner, 0
      FROM taken
)
