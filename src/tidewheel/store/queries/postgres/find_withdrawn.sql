-- Scheduler: ready tasks of a run that cannot be claimed since it was let go.
SELECT seq, queue FROM tidewheel.task
 WHERE run = %(run)s AND status = 'ready'
   AND NOT EXISTS (SELECT 1 FROM tidewheel.ready
                    WHERE ready.queue = task.queue AND ready.delayed IN (false, true)
                      AND ready.rank = -task.priority AND ready.task_seq = task.seq)
 ORDER BY seq;
