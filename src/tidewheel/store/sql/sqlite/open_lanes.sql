-- Claim by rules: keys whose rates leave room again.
UPDATE lane SET closed = false, opens_at = NULL
 WHERE queue = :queue AND opens_at <= (SELECT now_seconds());
