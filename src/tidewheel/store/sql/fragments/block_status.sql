-- Blocks: the status of the block that a run is (`core/operator/blocks.py` has the same rule).
CASE WHEN run.status = 'stopped' AND substr(run.reason, 1, 11) = 'aborted by ' THEN 'aborted'
                WHEN run.status IN ('stalled', 'error') OR run.status = 'stopped' AND substr(run.reason, 1, 9) = 'aborted: ' THEN 'failed'
                WHEN run.status = 'created' THEN CASE WHEN {may_begin} THEN 'created' ELSE 'waiting_for_blocks' END
                WHEN run.status IN ('paused', 'waiting for release', 'stopping') THEN 'running'
                WHEN run.status <> 'running' THEN run.status
                WHEN EXISTS (SELECT 1 FROM tidewheel.pool WHERE pool.run = run.number AND pool.stage IN (2, 3))
                     OR run.number IN (SELECT task.run FROM tidewheel.lease AS lease JOIN tidewheel.task AS task ON task.seq = lease.task_seq)
                     THEN 'running'
                WHEN EXISTS (SELECT 1 FROM tidewheel.pool WHERE pool.run = run.number AND pool.stage = 1) THEN 'waiting_for_resources'
                WHEN EXISTS (SELECT 1 FROM tidewheel.pool
                              WHERE pool.run = run.number AND pool.stage = 0 AND substr(pool.name, 1, 7) = 'object@')
                     AND NOT EXISTS (SELECT 1 FROM tidewheel.pool JOIN tidewheel.timer
                                         ON timer.run = pool.run AND timer.point = pool.point AND timer.name = pool.name
                                      WHERE pool.run = run.number)
                     THEN 'waiting_for_object'
                ELSE 'running' END
