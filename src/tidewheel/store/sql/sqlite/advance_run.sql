-- Scheduler: the head of a batch. It is the next one of the scheduler that holds the run, or nothing.
-- A run that was complete, and is at once again, ended when it was complete first.
UPDATE run
   SET batch = :batch, given = NULL, status = :status, reason = :reason,
       definition = coalesce(:definition, definition),
       options = coalesce(:options, options), updated_at = now_seconds(),
       host = CASE WHEN :ends THEN NULL ELSE host END,
       boot_id = CASE WHEN :ends THEN NULL ELSE boot_id END,
       pid = CASE WHEN :ends THEN NULL ELSE pid END,
       process_started = CASE WHEN :ends THEN NULL ELSE process_started END,
       deadline_at = CASE WHEN :ends THEN NULL ELSE now_seconds() + :lease_seconds END,
       ended_at = CASE WHEN :ends AND NOT (status = 'completed' AND :status = 'completed' AND ended_at IS NOT NULL)
                  THEN now_seconds() ELSE ended_at END
 WHERE number = :run AND epoch = :epoch AND batch = :batch - 1 AND host IS NOT NULL
RETURNING number;
