-- Events: batches of runs behind a place, of transactions that are older than every open one.
SELECT told.xid::text AS major, told.seq AS minor, told.at, told.run AS number, told.name AS run,
       told.workflow, told.queue,
       told.status, told.reason, told.batch, run_change.changes
  FROM tidewheel.run_history AS told
  LEFT JOIN tidewheel.run_change ON run_change.run = told.run AND run_change.batch = told.batch
 WHERE (told.xid, told.seq) > (:major::text::xid8, :minor::bigint)
   AND told.xid < pg_snapshot_xmin(pg_current_snapshot())
 ORDER BY told.xid, told.seq LIMIT :count;
