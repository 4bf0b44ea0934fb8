-- Verify T6: exactly the ready tasks can be claimed, each for what it asks; not those of a run let go (P22).
-- One in a lane is not before the lane's head, unless there is news of it.
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
             OR ({ready.claim_terms}) IS DISTINCT FROM ({task.claim_terms})
             OR ready.laned <> (task.limit_key IS NOT NULL AND EXISTS (
                    SELECT 1 FROM tidewheel.queue WHERE queue.name = task.queue AND lanes))
             OR (ready.laned AND NOT ready.delayed
                 AND NOT EXISTS (SELECT 1 FROM tidewheel.lane_news AS news
                                  WHERE news.queue = ready.queue AND news.key = ready.limit_key)
                 AND NOT EXISTS (SELECT 1 FROM tidewheel.lane
                                  WHERE lane.queue = ready.queue AND lane.key = ready.limit_key
                                    AND (lane.rank < ready.rank
                                         OR (lane.rank = ready.rank AND lane.task_seq <= ready.task_seq))))))
 ORDER BY task.seq;
