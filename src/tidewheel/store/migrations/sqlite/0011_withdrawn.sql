-- Of a run that was let go nothing can be claimed (SQLite); earlier versions left its ready tasks to any worker.
-- What is withdrawn is listed here until the run goes on: nobody need walk through all that the run ever submitted.
-- One that is cancelled meanwhile stays listed, and is passed over.

CREATE TABLE withdrawn (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    task_seq INTEGER NOT NULL,
    PRIMARY KEY (run, task_seq)
) WITHOUT ROWID, STRICT;

INSERT INTO withdrawn (run, task_seq)
SELECT task.run, task.seq
  FROM ready JOIN task ON task.seq = ready.task_seq
  JOIN run ON run.number = task.run
 WHERE task.status = 'ready' AND run.status IN ('stopped', 'completed', 'error');

DELETE FROM ready WHERE task_seq IN (SELECT task_seq FROM withdrawn);
