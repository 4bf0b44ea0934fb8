-- Of a run that is stopping nothing more can be claimed (PostgreSQL); earlier versions waited for what no worker had taken.

INSERT INTO tidewheel.withdrawn (run, task_seq)
SELECT task.run, task.seq
  FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
  JOIN tidewheel.run ON run.number = task.run
 WHERE task.status = 'ready' AND run.status = 'stopping'
    ON CONFLICT DO NOTHING;

DELETE FROM tidewheel.ready WHERE task_seq IN (SELECT task_seq FROM tidewheel.withdrawn);
