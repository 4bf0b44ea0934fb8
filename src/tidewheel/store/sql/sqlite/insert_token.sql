-- Admins: a new token, known by the hash of its secret.
INSERT INTO token (kind, parent, name, digest, scopes, queues, workflows, created_at, expires_at)
VALUES (:kind, :parent, :name, :digest, :scopes, :queues, :workflows, now_seconds(),
        now_seconds() + :lasts_seconds)
RETURNING number;
