-- Server: links that log nobody in any more.
DELETE FROM token
 WHERE number IN (SELECT number FROM token
                   WHERE kind = 'login' AND created_at < now_seconds() - :keep_seconds
                     AND (revoked_at IS NOT NULL OR expires_at <= now_seconds())
                   ORDER BY number LIMIT :count);
