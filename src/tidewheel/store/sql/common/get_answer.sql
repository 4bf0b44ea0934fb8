-- Server: what was answered to the same request before.
SELECT token, key, fingerprint, status, body FROM tidewheel.idempotency WHERE token = :token AND key = :key;
