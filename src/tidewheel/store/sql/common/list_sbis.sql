-- Blocks: scheduling block instances, newest first.
SELECT id, body, fingerprint, requested_at, requested_by
  FROM tidewheel.sbi
 WHERE :before::text IS NULL
    OR (requested_at, id) < (SELECT last.requested_at, last.id FROM tidewheel.sbi AS last WHERE last.id = :before::text)
 ORDER BY requested_at DESC, id DESC LIMIT :count;
