-- Server: answers that nobody asks for any more.
DELETE FROM idempotency
 WHERE (token, key) IN (SELECT token, key FROM idempotency
                         WHERE at < now_seconds() - :keep_seconds ORDER BY at LIMIT :count);
