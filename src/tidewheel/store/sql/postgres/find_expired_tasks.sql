-- Retention: ended long ago, and nothing live depends on them. What belongs to a run goes with the run.
(SELECT history.task_seq, history.at
   FROM tidewheel.history JOIN tidewheel.task ON task.seq = history.task_seq
  WHERE history.to_status IN ('succeeded', 'failed', 'cancelled')
    AND history.at < (SELECT tidewheel.now_seconds()) - :retention_seconds
    AND {may_expire}
  ORDER BY history.at, history.task_seq LIMIT :count)
 UNION ALL
(SELECT task.seq, joint.at
   FROM tidewheel.joint_step AS joint CROSS JOIN LATERAL unnest(joint.task_seqs) AS member (seq)
   JOIN tidewheel.task ON task.seq = member.seq
  WHERE joint.to_status = 'succeeded'
    AND joint.at < (SELECT tidewheel.now_seconds()) - :retention_seconds
    AND {may_expire}
  ORDER BY joint.at, task.seq LIMIT :count)
 ORDER BY 2, 1 LIMIT :count;
