-- Of a run that was let go nothing can be claimed (PostgreSQL); earlier versions left its ready tasks to any worker.
-- What is withdrawn is listed here until the run goes on: nobody need walk through all that the run ever submitted.
-- One that is cancelled meanwhile stays listed, and is passed over.

CREATE TABLE tidewheel.withdrawn (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    task_seq bigint NOT NULL,
    PRIMARY KEY (run, task_seq)
);

INSERT INTO tidewheel.withdrawn (run, task_seq)
SELECT task.run, task.seq
  FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
  JOIN tidewheel.run ON run.number = task.run
 WHERE task.status = 'ready' AND run.status IN ('stopped', 'completed', 'error');

DELETE FROM tidewheel.ready WHERE task_seq IN (SELECT task_seq FROM tidewheel.withdrawn);
