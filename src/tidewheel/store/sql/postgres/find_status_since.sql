-- Looks: when a run got the status that it has.
SELECT min(at) FROM tidewheel.run_history
 WHERE run = %(run)s
   AND seq > coalesce((SELECT seq FROM tidewheel.run_history
                        WHERE run = %(run)s AND status <> %(status)s
                        ORDER BY seq DESC LIMIT 1), 0);
