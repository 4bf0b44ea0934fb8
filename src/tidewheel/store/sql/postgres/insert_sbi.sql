-- Blocks: a scheduling block instance; nothing if there is one of this id.
INSERT INTO tidewheel.sbi (id, body, fingerprint, requested_at, requested_by)
VALUES (%(id)s, %(body)s, %(fingerprint)s, tidewheel.now_seconds(), %(who)s)
    ON CONFLICT (id) DO NOTHING
RETURNING id;
