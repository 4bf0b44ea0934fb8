-- Server: a login that is good for one time was used, by whoever gets a row back.
UPDATE tidewheel.token SET revoked_at = tidewheel.now_seconds(), used_at = tidewheel.now_seconds()
 WHERE number = :number AND kind = 'login' AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > tidewheel.now_seconds())
RETURNING number;
