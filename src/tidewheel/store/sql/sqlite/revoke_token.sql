-- Admins: a token opens nothing any more; the first time counts.
UPDATE token SET revoked_at = coalesce(revoked_at, now_seconds()) WHERE number = :number
RETURNING number;
