-- Server: one with this key has stopped; another that runs says so again soon.
UPDATE tidewheel.attempt_key SET seen_at = NULL WHERE fingerprint = :fingerprint;
