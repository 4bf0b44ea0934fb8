-- Blocks: which statuses a run had, one after the other, each with the reason that it began with.
SELECT told.at, told.status, told.reason
  FROM (SELECT seq, at, status, reason, lag(status) OVER (ORDER BY seq) AS earlier
          FROM tidewheel.run_history WHERE run = :run) AS told
 WHERE told.earlier IS NULL OR told.earlier <> told.status
 ORDER BY told.seq;
