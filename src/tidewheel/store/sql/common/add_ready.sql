-- Submit, cascade: tasks that became ready can be claimed, delayed ones when they are due.
INSERT INTO tidewheel.ready
       (queue, delayed, laned, rank, task_seq, due_at, ready_at, has_command, {claim_terms})
SELECT queue, coalesce(due_at > clock.now, false), {in_lane}, -priority, seq, due_at, clock.now,
       command IS NOT NULL, {claim_terms}
  FROM tidewheel.task, (SELECT tidewheel.now_seconds() AS now) AS clock
 WHERE seq = ANY (:seqs::bigint[]) AND status = 'ready';
