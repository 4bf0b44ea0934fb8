-- Report: jobs say that they run, and nothing else; the first time counts.
UPDATE lease SET started_at = coalesce(started_at, max(claimed_at, (SELECT now_seconds()) - (value ->> 'ago')))
  FROM jsonb_each(:starts) JOIN task ON task.id = value ->> 'id'
 WHERE lease.task_seq = task.seq AND lease.attempt = value ->> 'attempt'
   AND lease.owner = :worker
RETURNING (SELECT id FROM task WHERE seq = task_seq), (SELECT status FROM task WHERE seq = task_seq),
          (SELECT run FROM task WHERE seq = task_seq);
