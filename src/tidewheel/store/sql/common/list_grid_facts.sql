-- Home of the page: how runs write points, where something is left to do first, since when they stand still.
-- The last is not asked of one that goes on: it may have had a thousand batches since.
SELECT run.number,
       (SELECT run_fact.body FROM tidewheel.run_fact WHERE run_fact.run = run.number AND kind = 'run' AND key = '') AS state,
       (SELECT min(pool.point) FROM tidewheel.pool WHERE pool.run = run.number) AS earliest,
       CASE WHEN run.status IN ('stalled', 'error') THEN
       (SELECT min(run_history.at) FROM tidewheel.run_history
         WHERE run_history.run = run.number
           AND run_history.seq > coalesce((SELECT other.seq FROM tidewheel.run_history AS other
                                            WHERE other.run = run.number AND other.status <> run.status
                                            ORDER BY other.seq DESC LIMIT 1), 0)) END AS since
  FROM tidewheel.run
 WHERE run.number = ANY (:runs::bigint[]);
