-- Events: steps of tasks behind a place, of transactions that are older than every open one.
SELECT history.xid::text AS major, history.seq AS minor, history.at, task.id AS task_id, task.queue,
       task.name, run.name AS run,
       history.signal, history.from_status, history.to_status, history.attempt, history.worker,
       history.progress, attempt.exit_status
  FROM tidewheel.history
  JOIN tidewheel.task ON task.seq = history.task_seq
  LEFT JOIN tidewheel.attempt ON attempt.task_seq = history.task_seq
                             AND attempt.attempt = history.attempt
                             AND attempt.ended_by = history.signal
  LEFT JOIN tidewheel.run ON run.number = task.run
 WHERE (history.xid, history.seq) > (:major::text::xid8, :minor::bigint)
   AND history.xid < pg_snapshot_xmin(pg_current_snapshot())
 ORDER BY history.xid, history.seq LIMIT :count;
