-- Server: a token was used.
UPDATE tidewheel.token SET used_at = tidewheel.now_seconds() WHERE number = :number;
