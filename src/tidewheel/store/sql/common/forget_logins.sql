-- Server: links that log nobody in any more.
DELETE FROM tidewheel.token
 WHERE number IN (SELECT number FROM tidewheel.token
                   WHERE kind = 'login' AND created_at < tidewheel.now_seconds() - :keep_seconds
                     AND (revoked_at IS NOT NULL OR expires_at <= tidewheel.now_seconds())
                   ORDER BY number LIMIT :count);
