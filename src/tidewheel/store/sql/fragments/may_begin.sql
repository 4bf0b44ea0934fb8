-- Scheduler: a run has begun, or no other is left that it has to wait for.
(batch > 0 OR NOT EXISTS (
           SELECT 1 FROM tidewheel.run_need AS need JOIN tidewheel.run AS parent ON parent.number = need.parent
            WHERE need.run = run.number
              AND NOT CASE need.condition
                      WHEN 'complete' THEN parent.status = 'completed'
                      WHEN 'started' THEN parent.batch > 0
                      WHEN 'failed' THEN parent.status IN ('stalled', 'error')
                           OR parent.status = 'stopped' AND substr(parent.reason, 1, 9) = 'aborted: '  -- by itself, after it stalled
                      WHEN 'aborted' THEN parent.status IN ('stalled', 'error', 'stopped')
                      ELSE parent.status IN ('stalled', 'error', 'stopped', 'completed') END))
