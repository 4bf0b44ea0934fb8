-- Events: batches of runs behind a place.
SELECT told.behind AS major, told.seq AS minor, told.at, told.run AS number, told.name AS run,
       told.workflow, told.queue,
       told.status, told.reason, told.batch, run_change.changes
  FROM run_history AS told
  LEFT JOIN run_change ON run_change.run = told.run AND run_change.batch = told.batch
 WHERE (told.behind, told.seq) > (:major, :minor)
 ORDER BY told.behind, told.seq LIMIT :count;
