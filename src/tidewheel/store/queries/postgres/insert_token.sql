-- Admins: a new token, known by the hash of its secret.
INSERT INTO tidewheel.token (name, digest, scopes, queues, workflows, created_at, expires_at)
VALUES (%(name)s, %(digest)s, %(scopes)s, %(queues)s, %(workflows)s, tidewheel.now_seconds(),
        tidewheel.now_seconds() + %(lasts_seconds)s::double precision)
RETURNING number;
