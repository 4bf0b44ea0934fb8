-- Scheduler, cascade: these tasks wait until their run goes on.
INSERT INTO tidewheel.withdrawn (run, task_seq)
SELECT run, seq FROM tidewheel.task WHERE seq = ANY (:seqs::bigint[])
    ON CONFLICT DO NOTHING;
