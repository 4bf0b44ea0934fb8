-- Server: the answer to a request that may come again; the first one counts.
INSERT INTO tidewheel.idempotency (token, key, fingerprint, status, body, at)
VALUES (:token, :key, :fingerprint, :status, :body, tidewheel.now_seconds())
ON CONFLICT (token, key) DO NOTHING;
