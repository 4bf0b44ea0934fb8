-- Server: the token that a caller shows.
SELECT number, name, digest, scopes, queues, workflows, created_at, expires_at, used_at, revoked_at,
       tidewheel.now_seconds()
  FROM tidewheel.token WHERE number = %(number)s;
