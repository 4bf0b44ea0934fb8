-- Scheduler: the head of a batch. It is the next one of the scheduler that holds the run, or nothing.
-- A run that was complete, and is at once again, ended when it was complete first; one that goes on has not ended.
-- Nothing is set here that an index has: see redefine_run.
UPDATE tidewheel.run
   SET batch = :batch, given = NULL, status = :status::text, reason = :reason,
       options = coalesce(:options::text, options), updated_at = tidewheel.now_seconds(),
       host = CASE WHEN :ends::boolean THEN NULL ELSE host END,
       boot_id = CASE WHEN :ends::boolean THEN NULL ELSE boot_id END,
       pid = CASE WHEN :ends::boolean THEN NULL ELSE pid END,
       process_started = CASE WHEN :ends::boolean THEN NULL ELSE process_started END,
       deadline_at = CASE WHEN :ends::boolean THEN NULL ELSE tidewheel.now_seconds() + :lease_seconds END,
       ended_at = CASE WHEN status = 'completed' AND :status::text = 'completed' AND ended_at IS NOT NULL THEN ended_at
                  WHEN :ends::boolean THEN tidewheel.now_seconds() END
 WHERE number = :run AND epoch = :epoch AND batch = :batch - 1 AND host IS NOT NULL
RETURNING number;
