-- Blocks: how much the run of a block says about its instance, from running to completed (`sbi_status` of `core/operator/blocks.py` has the same order).
CASE WHEN run.status = 'stopped' AND substr(run.reason, 1, 11) = 'aborted by ' THEN 4
                WHEN run.status IN ('stalled', 'error') OR run.status = 'stopped' AND substr(run.reason, 1, 9) = 'aborted: ' THEN 5
                WHEN run.status = 'stopped' THEN 3
                WHEN run.status = 'created' THEN 2
                WHEN run.status = 'completed' THEN 1
                ELSE 6 END
