-- Server: answers that nobody asks for any more.
DELETE FROM tidewheel.idempotency
 WHERE (token, key) IN (SELECT token, key FROM tidewheel.idempotency
                         WHERE at < tidewheel.now_seconds() - :keep_seconds ORDER BY at LIMIT :count);
