-- Cascade: one step of each task, if it still is as it was decided on.
UPDATE task
   SET status = change.to_status, attempt = change.attempt, failures = change.failures,
       lapses = change.lapses, owner = change.owner, progress = change.progress,
       held_key = CASE WHEN change.to_status IN ('succeeded', 'failed', 'cancelled') THEN NULL
                       ELSE task.held_key END,
       due_at = CASE WHEN change.delay_seconds > 0 THEN clock.now + change.delay_seconds
                     WHEN change.to_status = 'running' THEN NULL
                     ELSE task.due_at END,
       updated_at = clock.now
  FROM (SELECT value ->> 'seq' AS seq, value ->> 'to_status' AS to_status,
               value ->> 'from_status' AS from_status,
               value ->> 'from_attempt' AS from_attempt, value ->> 'attempt' AS attempt,
               value ->> 'failures' AS failures, value ->> 'lapses' AS lapses,
               value ->> 'owner' AS owner, value ->> 'progress' AS progress,
               value ->> 'delay_seconds' AS delay_seconds
          FROM json_each(:changes)) AS change,
       (SELECT now_seconds() AS now) AS clock
 WHERE task.seq = change.seq
   AND task.status = change.from_status
   AND task.attempt = change.from_attempt
RETURNING seq;
