-- Report: success of tasks without dependencies, the common case.
-- Rows are met in the order of seq, like everywhere; one that changed since the snapshot of this
-- statement is left alone.
WITH done AS MATERIALIZED (
    SELECT task.ctid AS place, said.attempt, said.started_ago, said.exit_status, said.metrics
      FROM unnest(:ids::text[], :attempts::integer[], :started_ago::float8[], :exit_status::integer[], :metrics::text[])
               AS said (id, attempt, started_ago, exit_status, metrics)
      JOIN tidewheel.task ON task.id = ANY (ARRAY[said.id])
     ORDER BY task.seq
), ended AS (
    UPDATE tidewheel.task
       SET status = 'succeeded', progress = 1, held_key = NULL,
           updated_at = (SELECT tidewheel.now_seconds())
      FROM done
     WHERE task.ctid = done.place AND task.status = 'running' AND task.attempt = done.attempt
       AND task.owner = :worker AND task.graph IS NULL
    RETURNING task.id, task.seq, task.run, task.attempt, done.started_ago, done.exit_status,
              done.metrics, task.updated_at AS now
), joint AS MATERIALIZED (
    SELECT nextval('tidewheel.history_seq_seq') AS seq
), gone AS (
    DELETE FROM tidewheel.lease USING ended WHERE lease.task_seq = ANY (ARRAY[ended.seq])
    RETURNING lease.task_seq, lease.attempt, lease.owner, lease.claimed_at,
              coalesce(lease.started_at, CASE WHEN ended.started_ago IS NOT NULL
                  THEN greatest(lease.claimed_at, ended.now - ended.started_ago) END) AS started_at, ended.now, ended.exit_status, ended.metrics,
              lease.claim_seq
), kept AS (
    INSERT INTO tidewheel.attempt
           (task_seq, attempt, worker, claimed_at, started_at, ended_at, ended_by, exit_status,
            metrics, claim_seq, end_seq)
    SELECT task_seq, attempt, owner, claimed_at, started_at, now, 'succeed', exit_status, metrics, claim_seq,
           (SELECT seq FROM joint)
      FROM gone
), told AS (
    INSERT INTO tidewheel.joint_step
           (seq, at, signal, from_status, to_status, worker, progress, task_seqs, attempts)
    SELECT (SELECT seq FROM joint), min(now), 'succeed', 'running', 'succeeded', :worker, 1,
           array_agg(seq), array_agg(attempt)
      FROM ended
    HAVING count(*) > 0
)
SELECT id, seq, run FROM ended;
