-- Admins: a new token, known by the hash of its secret.
INSERT INTO tidewheel.token (kind, parent, name, digest, scopes, queues, workflows, created_at, expires_at)
VALUES (%(kind)s, %(parent)s::bigint, %(name)s, %(digest)s, %(scopes)s, %(queues)s, %(workflows)s, tidewheel.now_seconds(),
        tidewheel.now_seconds() + %(lasts_seconds)s::double precision)
RETURNING number;
