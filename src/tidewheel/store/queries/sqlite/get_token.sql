-- Server: the token that a caller shows.
SELECT number, name, digest, scopes, queues, workflows, created_at, expires_at, used_at, revoked_at,
       now_seconds()
  FROM token WHERE number = :number;
