-- Report: jobs say that they run, and nothing else; the first time counts.
WITH begun AS MATERIALIZED (
    SELECT task.seq, task.id, task.status, task.run, said.attempt, said.ago
      FROM json_to_recordset(:starts::json) AS said (id text, attempt integer, ago double precision)
      JOIN tidewheel.task ON task.id = ANY (ARRAY[said.id])
     ORDER BY task.seq
)
UPDATE tidewheel.lease
   SET started_at = coalesce(
           lease.started_at, greatest(lease.claimed_at, (SELECT tidewheel.now_seconds()) - begun.ago))
  FROM begun
 WHERE lease.task_seq = ANY (ARRAY[begun.seq]) AND lease.attempt = begun.attempt
   AND lease.owner = :worker
RETURNING begun.id, begun.status, begun.run;
