-- Retention: workers that stopped or fell silent long ago and hold no lease.
DELETE FROM worker
 WHERE number IN (
           SELECT number FROM worker
            WHERE coalesce(stopped_at, seen_at) < (SELECT now_seconds()) - :retention_seconds
              AND 'worker-' || number NOT IN (SELECT owner FROM lease)
            ORDER BY number LIMIT :count)
RETURNING number;
