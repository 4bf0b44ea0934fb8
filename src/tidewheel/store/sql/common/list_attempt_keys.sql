-- Server: with which keys others sign the tokens of jobs, and since when keys are used at all.
SELECT fingerprint, created_at, seen_at, tidewheel.now_seconds() AS now FROM tidewheel.attempt_key;
