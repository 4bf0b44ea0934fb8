-- Blocks: scheduling block instances, newest first.
SELECT id, body, fingerprint, requested_at, requested_by
  FROM tidewheel.sbi
 ORDER BY requested_at DESC, id DESC LIMIT :count;
