-- Claim on PostgreSQL: as many of the first that were locked as fit together, with their leases and the step that they make together.
-- `term` has the length of the leases. A task is found by its seq, not by the place that was locked: one that was amended after the snapshot of this statement has
-- another place, which the snapshot does not see, and would stay ready without a row in ready.
-- One that is exclusive weighs more than all of a claim: as the first it is taken alone, else it ends it.
-- Where nothing is asked for, all fit, and nothing is summed up.
plain AS MATERIALIZED (
    SELECT bool_and(cpu = 0 AND memory_bytes = 0 AND gpu = 0 AND buffer_bytes = 0 AND NOT exclusive) AS is_all
      FROM locked
), total AS (
    SELECT locked.row, locked.place, 0.0::float8 AS cpu, 0.0::float8 AS memory_bytes, 0 AS gpu, 0.0::float8 AS buffer_bytes, 1 AS company
      FROM locked
     WHERE (SELECT is_all FROM plain)
     UNION ALL
    SELECT locked.row, locked.place, sum(cpu) OVER earlier AS cpu,
           sum(memory_bytes::float8) OVER earlier AS memory_bytes, sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes::float8) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM locked
     WHERE NOT (SELECT is_all FROM plain)
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
), joint AS MATERIALIZED (
    SELECT nextval('tidewheel.history_seq_seq') AS seq
), leased AS (
    INSERT INTO tidewheel.lease
           (task_seq, {lease_terms}, claimed_at, lease_seconds, deadline_at, claim_seq)
    SELECT seq, {lease_terms}, updated_at, term.lease_seconds, updated_at + term.lease_seconds,
           (SELECT seq FROM joint)
      FROM term, taken
), told AS (
    INSERT INTO tidewheel.joint_step
           (seq, at, signal, from_status, to_status, worker, progress, task_seqs, attempts)
    SELECT (SELECT seq FROM joint), min(updated_at), 'claim', 'ready', 'running', :worker, 0,
           array_agg(seq), array_agg(attempt)
      FROM taken
    HAVING count(*) > 0
)
