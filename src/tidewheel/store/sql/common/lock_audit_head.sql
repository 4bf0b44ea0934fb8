-- Audit: the last entry, which the next one continues; others who add wait. And the time.
SELECT begins, number, sha256, tidewheel.now_seconds() AS now FROM tidewheel.audit_head FOR UPDATE;
