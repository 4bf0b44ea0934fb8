-- Submit: store new tasks with their first history entry; a known id is left out.
-- The rows have the columns of the table; `due_at` comes as seconds from now.
WITH made AS (
    INSERT INTO tidewheel.task
           ({task_columns}, executes, digest, run, held_key, due_at, created_at, updated_at)
    SELECT {task_columns}, executes, digest, run, unique_key, clock.now + due_at, clock.now, clock.now
      FROM json_populate_recordset(NULL::tidewheel.task, :tasks::json) AS new,
           (SELECT tidewheel.now_seconds() AS now) AS clock
        ON CONFLICT (id) DO NOTHING
    RETURNING id, seq, queue, command, priority, status, due_at, created_at, {claim_terms}
), told AS (
    INSERT INTO tidewheel.history (task_seq, at, to_status, attempt, progress)
    SELECT seq, created_at, status, 0, 0 FROM made
), queued AS (
    INSERT INTO tidewheel.ready
           (queue, delayed, laned, rank, task_seq, due_at, ready_at, has_command, {claim_terms})
    SELECT queue, due_at IS NOT NULL, {in_lane}, -priority, seq, due_at, created_at, command IS NOT NULL,
           {claim_terms}
      FROM made
     WHERE status = 'ready'
)
SELECT id, seq FROM made;
