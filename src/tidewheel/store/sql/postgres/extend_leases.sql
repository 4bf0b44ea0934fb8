-- Heartbeat: renew the leases that are still those workers', and say how their tasks stand.
-- "= ANY (ARRAY[…])" leaves the planner one way to a lease, by its key: with a plain "=" it reads
-- all leases for each beat as soon as it believes that a worker has few.
WITH beat AS MATERIALIZED (
    SELECT task.seq, task.id, task.status, said.worker, said.attempt, said.progress
      FROM json_to_recordset(:beats::json)
               AS said (worker text, id text, attempt integer, progress float8)
      JOIN tidewheel.task ON task.id = ANY (ARRAY[said.id])
     ORDER BY task.seq
)
UPDATE tidewheel.lease
   SET deadline_at = (SELECT tidewheel.now_seconds()) + lease.lease_seconds,
       progress = coalesce(beat.progress, lease.progress)
  FROM beat
 WHERE lease.task_seq = ANY (ARRAY[beat.seq]) AND lease.attempt = beat.attempt
   AND lease.owner = beat.worker
RETURNING lease.owner, beat.id, lease.attempt, beat.status;
