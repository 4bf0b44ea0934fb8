-- Admins: a token opens nothing any more; the first time counts.
UPDATE tidewheel.token SET revoked_at = coalesce(revoked_at, tidewheel.now_seconds()) WHERE number = :number
RETURNING number;
