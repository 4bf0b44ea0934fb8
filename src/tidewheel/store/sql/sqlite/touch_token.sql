-- Server: a token was used.
UPDATE token SET used_at = now_seconds() WHERE number = :number;
