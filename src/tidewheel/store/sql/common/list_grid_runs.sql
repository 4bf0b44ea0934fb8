-- Home of the page: the newest run of each workflow, and every one that is open; those that need action first.
SELECT number, name, workflow, status
  FROM tidewheel.run
 WHERE parent IS NULL AND status <> 'deleted'
   AND (status IN ('running', 'paused', 'waiting for release', 'stalled', 'stopping')
        OR number IN (SELECT max(number) FROM tidewheel.run
                       WHERE parent IS NULL AND status <> 'deleted' GROUP BY workflow))
 ORDER BY CASE WHEN status IN ('stalled', 'error') THEN 0 WHEN status IN ('completed', 'stopped', 'created') THEN 2 ELSE 1 END,
          number DESC
 LIMIT :count;
