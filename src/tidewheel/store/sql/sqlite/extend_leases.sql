-- Heartbeat: renew the leases that are still those workers', and say how their tasks stand.
UPDATE lease
   SET deadline_at = now_seconds() + lease_seconds,
       progress = coalesce(value ->> 'progress', lease.progress)
  FROM jsonb_each(:beats) JOIN task ON task.id = value ->> 'id'
 WHERE lease.task_seq = task.seq AND lease.attempt = value ->> 'attempt' AND lease.owner = value ->> 'worker'
RETURNING owner, (SELECT id FROM task WHERE seq = task_seq), attempt,
          (SELECT status FROM task WHERE seq = task_seq);
