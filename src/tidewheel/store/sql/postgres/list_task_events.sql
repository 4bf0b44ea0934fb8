-- Events: steps of tasks behind a place, of transactions that are older than every open one.
-- A joint step may have begun before that place: it has a place for each of its tasks.
WITH told AS (
    (SELECT history.xid, history.seq, history.at, history.task_seq, task.id AS task_id, task.queue, task.name, task.run,
            history.signal, history.from_status, history.to_status, history.attempt, history.worker,
            history.progress
       FROM tidewheel.history JOIN tidewheel.task ON task.seq = history.task_seq
      WHERE (history.xid, history.seq) > (:major::text::xid8, :minor::bigint)
        AND history.xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY history.xid, history.seq LIMIT :count)
     UNION ALL
    (SELECT joint.xid, joint.seq + member.number - 1, joint.at, task.seq, task.id, task.queue, task.name, task.run,
            joint.signal, joint.from_status, joint.to_status, member.attempt, joint.worker, joint.progress
       FROM tidewheel.joint_step AS joint
      CROSS JOIN LATERAL unnest(joint.task_seqs, joint.attempts) WITH ORDINALITY AS member (seq, attempt, number)
       JOIN tidewheel.task ON task.seq = member.seq
      WHERE (joint.xid, joint.seq) > (:major::text::xid8, :minor::bigint - 16384)
        AND (joint.xid, joint.seq + member.number - 1) > (:major::text::xid8, :minor::bigint)
        AND joint.xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY joint.xid, joint.seq, member.number LIMIT :count)
     ORDER BY 1, 2 LIMIT :count
)
SELECT told.xid::text AS major, told.seq AS minor, told.at, told.task_id, told.queue, told.name,
       (SELECT run.name FROM tidewheel.run WHERE run.number = told.run) AS run,
       told.signal, told.from_status, told.to_status, told.attempt, told.worker, told.progress,
       (SELECT attempt.exit_status FROM tidewheel.attempt
         WHERE attempt.task_seq = told.task_seq AND attempt.attempt = told.attempt
           AND attempt.ended_by = told.signal) AS exit_status
  FROM told
 ORDER BY told.xid, told.seq;
