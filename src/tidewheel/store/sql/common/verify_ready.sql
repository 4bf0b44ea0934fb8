-- Verify T6: exactly the ready tasks can be claimed, each for what it asks; not those of a run let go (P22).
SELECT task.id, CASE WHEN ready.task_seq IS NULL THEN 'ready, but not to be claimed'
                     WHEN task.status <> 'ready' THEN task.status || ', but can be claimed'
                     ELSE 'ready otherwise than it was asked for' END
  FROM tidewheel.task LEFT JOIN tidewheel.ready ON ready.task_seq = task.seq
 WHERE (ready.task_seq IS NOT NULL AND task.status <> 'ready')
    OR (ready.task_seq IS NULL AND task.status = 'ready'
        AND NOT EXISTS (SELECT 1 FROM tidewheel.run LEFT JOIN tidewheel.withdrawn ON withdrawn.run = run.number
                                                              AND withdrawn.task_seq = task.seq
                         WHERE run.number = task.run
                           AND (run.status = 'deleted'
                                OR (run.status IN ({withdrawn_statuses})
                                    AND withdrawn.task_seq IS NOT NULL))))
    OR (ready.task_seq IS NOT NULL
        AND (ready.queue <> task.queue OR ready.rank <> -task.priority
             OR ready.has_command <> (task.command IS NOT NULL)
             OR ({ready.claim_terms}) IS DISTINCT FROM ({task.claim_terms})))
 ORDER BY task.seq;
