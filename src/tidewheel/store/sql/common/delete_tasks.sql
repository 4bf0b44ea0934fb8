-- Retention: remove ended tasks; edges, outputs and usage go with them.
DELETE FROM tidewheel.task
 WHERE seq = ANY (:seqs::bigint[])
   AND status IN ('succeeded', 'failed', 'cancelled') AND run IS NULL
   AND NOT EXISTS (SELECT 1 FROM tidewheel.dependency JOIN tidewheel.task AS child ON child.seq = dependency.child
                    WHERE dependency.parent = task.seq
                      AND child.status NOT IN ('succeeded', 'failed', 'cancelled'))
RETURNING seq;
