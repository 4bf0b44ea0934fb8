-- Admins: a new token, known by the hash of its secret.
INSERT INTO tidewheel.token (kind, parent, name, digest, scopes, names, person, source, groups,
                             created_at, expires_at)
VALUES (:kind, :parent::bigint, :name, :digest, :scopes, :names, :person, :source, :groups,
        tidewheel.now_seconds(), tidewheel.now_seconds() + :lasts_seconds::float8)
RETURNING number;
