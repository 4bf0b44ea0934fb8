-- Retention: remove ended tasks; edges, outputs and usage go with them.
DELETE FROM task
 WHERE seq IN (SELECT value FROM json_each(:seqs))
   AND status IN ('succeeded', 'failed', 'cancelled') AND run IS NULL
   AND NOT EXISTS (SELECT 1 FROM dependency JOIN task AS child ON child.seq = dependency.child
                    WHERE dependency.parent = task.seq
                      AND child.status NOT IN ('succeeded', 'failed', 'cancelled'))
RETURNING seq;
