-- Scheduler: ready tasks of a run that cannot be claimed since it was let go.
SELECT seq, queue FROM task
 WHERE run = :run AND status = 'ready'
   AND NOT EXISTS (SELECT 1 FROM ready
                    WHERE ready.queue = task.queue AND ready.delayed IN (0, 1)
                      AND ready.rank = -task.priority AND ready.task_seq = task.seq)
 ORDER BY seq;
