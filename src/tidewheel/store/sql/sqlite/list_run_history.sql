-- Events: batches of runs behind a place.
SELECT told.behind, told.seq, told.at, told.run, told.name, told.workflow, told.queue,
       told.status, told.reason, told.batch, run_change.changes
  FROM run_history AS told
  LEFT JOIN run_change ON run_change.run = told.run AND run_change.batch = told.batch
 WHERE (told.behind, told.seq) > (:major, :minor)
 ORDER BY told.behind, told.seq LIMIT :count;
