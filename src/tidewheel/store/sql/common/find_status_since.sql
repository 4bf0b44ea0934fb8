-- Looks: when a run got the status that it has.
SELECT min(at) FROM tidewheel.run_history
 WHERE run = :run
   AND seq > coalesce((SELECT seq FROM tidewheel.run_history
                        WHERE run = :run AND status <> :status
                        ORDER BY seq DESC LIMIT 1), 0);
