-- Server: it runs, and signs the tokens of jobs with the key that has this fingerprint.
INSERT INTO tidewheel.attempt_key (fingerprint, created_at, seen_at)
VALUES (:fingerprint, tidewheel.now_seconds(), tidewheel.now_seconds())
ON CONFLICT (fingerprint) DO UPDATE SET seen_at = excluded.seen_at;
