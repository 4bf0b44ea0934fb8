-- Of a run that is stopping nothing more can be claimed (SQLite); earlier versions waited for what no worker had taken.

INSERT INTO withdrawn (run, task_seq)
SELECT task.run, task.seq
  FROM ready JOIN task ON task.seq = ready.task_seq
  JOIN run ON run.number = task.run
 WHERE task.status = 'ready' AND run.status = 'stopping'
    ON CONFLICT DO NOTHING;

DELETE FROM ready WHERE task_seq IN (SELECT task_seq FROM withdrawn);
