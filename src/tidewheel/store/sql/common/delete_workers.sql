-- Retention: workers that stopped or fell silent long ago and hold no lease.
DELETE FROM tidewheel.worker
 WHERE number IN (
           SELECT number FROM tidewheel.worker
            WHERE coalesce(stopped_at, seen_at) < (SELECT tidewheel.now_seconds()) - :retention_seconds
              AND 'worker-' || number NOT IN (SELECT owner FROM tidewheel.lease)
            ORDER BY number LIMIT :count)
RETURNING number;
