-- Of a run that was let go nothing can be claimed (PostgreSQL); earlier versions left its ready tasks to any worker.
-- They can be claimed again once the run goes on.

DELETE FROM tidewheel.ready
 WHERE task_seq IN (SELECT task.seq FROM tidewheel.task JOIN tidewheel.run ON run.number = task.run
                     WHERE task.status = 'ready' AND run.status IN ('stopped', 'completed', 'error'));
