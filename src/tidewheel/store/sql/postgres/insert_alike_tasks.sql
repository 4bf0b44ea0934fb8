-- Submit: store new tasks that say the same but for id, spec and digest, each with its first history entry; all of them are ready.
-- The one row has the columns of the table; `due_at` comes as seconds from now.
WITH said AS MATERIALIZED (
    SELECT {said_columns}, executes, digest, clock.now + due_at AS due_at, clock.now
      FROM json_populate_recordset(NULL::tidewheel.task, :said::json),
           (SELECT tidewheel.now_seconds() AS now) AS clock
), made AS (
    INSERT INTO tidewheel.task
           (id, spec, digest, {said_columns}, executes, due_at, created_at, updated_at)
    SELECT new.id, new.spec, coalesce(new.digest, said.digest), {said_columns}, executes, due_at, now, now
      FROM said, unnest(:ids::text[], :specs::text[], :digests::text[]) AS new (id, spec, digest)
    RETURNING seq
), told AS (
    INSERT INTO tidewheel.history (task_seq, at, to_status, attempt, progress)
    SELECT seq, now, status, 0, 0 FROM said, made
)
INSERT INTO tidewheel.ready
       (queue, delayed, laned, rank, task_seq, due_at, ready_at, has_command, {claim_terms})
SELECT queue, due_at IS NOT NULL, {in_lane}, -priority, seq, due_at, now, command IS NOT NULL, {claim_terms}
  FROM said, made;
