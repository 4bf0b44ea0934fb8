-- Verify T13: nothing is left of tasks that are gone; joint steps and attempts name each other.
WITH member AS (
    SELECT joint.seq, joint.signal, said.task_seq, said.attempt
      FROM tidewheel.joint_step AS joint CROSS JOIN LATERAL unnest(joint.task_seqs, joint.attempts) AS said (task_seq, attempt)
), pointer AS (
    SELECT claim_seq AS seq, 'claim' AS signal, task_seq, attempt FROM tidewheel.lease
     UNION ALL
    SELECT claim_seq, 'claim', task_seq, attempt FROM tidewheel.attempt
     UNION ALL
    SELECT end_seq, ended_by, task_seq, attempt FROM tidewheel.attempt
)
SELECT CAST(orphan.task_seq AS TEXT), orphan.kind || ' of a task that is not there'
  FROM (SELECT task_seq, 'history' AS kind FROM tidewheel.history
        UNION SELECT task_seq, 'attempt' FROM tidewheel.attempt
        UNION SELECT task_seq, 'lease' FROM tidewheel.lease
        UNION SELECT task_seq, 'ready row' FROM tidewheel.ready) AS orphan
  LEFT JOIN tidewheel.task ON task.seq = orphan.task_seq
 WHERE task.seq IS NULL
UNION ALL
SELECT CAST(min(member.task_seq) AS TEXT), 'a joint step of tasks that are not there'
  FROM member LEFT JOIN tidewheel.task ON task.seq = member.task_seq
 GROUP BY member.seq
HAVING count(task.seq) = 0
UNION ALL
SELECT task.id, CASE WHEN pointer.seq IS NULL THEN 'no attempt says that it made the joint step ' || member.seq
                     ELSE 'the joint step ' || pointer.seq || ' does not name attempt ' || pointer.attempt END
  FROM (SELECT seq, signal, task_seq, attempt FROM pointer WHERE seq IS NOT NULL) AS pointer
  FULL JOIN member ON member.seq = pointer.seq AND member.task_seq = pointer.task_seq
                  AND member.attempt = pointer.attempt AND member.signal = pointer.signal
  JOIN tidewheel.task ON task.seq = coalesce(pointer.task_seq, member.task_seq)
 WHERE pointer.seq IS NULL OR member.seq IS NULL
 ORDER BY 1, 2;
