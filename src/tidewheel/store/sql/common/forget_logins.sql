-- Server: links that log nobody in any more, and sessions that are over.
DELETE FROM tidewheel.token
 WHERE number IN (SELECT number FROM tidewheel.token
                   WHERE (kind <> 'bearer' OR person IS NOT NULL)
                     AND created_at < tidewheel.now_seconds() - :keep_seconds
                     AND (revoked_at IS NOT NULL OR expires_at <= tidewheel.now_seconds())
                   ORDER BY number LIMIT :count);
