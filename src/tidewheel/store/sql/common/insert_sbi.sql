-- Blocks: a scheduling block instance; nothing if there is one of this id.
INSERT INTO tidewheel.sbi (id, body, fingerprint, requested_at, requested_by)
VALUES (:id, :body, :fingerprint, tidewheel.now_seconds(), :who)
    ON CONFLICT (id) DO NOTHING
RETURNING id;
