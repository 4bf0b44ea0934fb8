-- Scheduler, cascade: these tasks wait until their run goes on.
INSERT INTO withdrawn (run, task_seq)
SELECT run, seq FROM task WHERE seq IN (SELECT value FROM json_each(:seqs))
    ON CONFLICT DO NOTHING;
