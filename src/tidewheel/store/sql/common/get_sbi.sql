-- Blocks: a scheduling block instance.
SELECT id, body, fingerprint, requested_at, requested_by FROM tidewheel.sbi WHERE id = :id;
