-- Cascade: these tasks are not ready any more.
DELETE FROM tidewheel.ready
 USING tidewheel.task
 WHERE task.seq = ANY (:seqs::bigint[])
   AND ready.queue = task.queue AND ready.delayed IN (false, true) AND ready.laned IN (false, true)
   AND ready.rank = -task.priority
   AND ready.task_seq = task.seq;
