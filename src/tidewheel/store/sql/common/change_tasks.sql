-- Cascade: one step of each task, if it still is as it was decided on.
-- "= ANY (ARRAY[…])": see extend_leases.
UPDATE tidewheel.task
   SET status = change.to_status, attempt = change.attempt, failures = change.failures,
       lapses = change.lapses, owner = change.owner, progress = change.progress,
       held_key = CASE WHEN change.to_status IN ('succeeded', 'failed', 'cancelled') THEN NULL
                       ELSE task.held_key END,
       due_at = CASE WHEN change.delay_seconds > 0 THEN clock.now + change.delay_seconds
                     WHEN change.to_status = 'running' THEN NULL
                     ELSE task.due_at END,
       updated_at = clock.now
  FROM json_to_recordset(:changes::json) AS change (
           seq bigint, to_status text, from_status text, from_attempt integer,
           attempt integer, failures integer, lapses integer, owner text, progress float8,
           delay_seconds float8),
       (SELECT tidewheel.now_seconds() AS now) AS clock
 WHERE task.seq = ANY (ARRAY[change.seq])
   AND task.status = change.from_status
   AND task.attempt = change.from_attempt
RETURNING task.seq;
