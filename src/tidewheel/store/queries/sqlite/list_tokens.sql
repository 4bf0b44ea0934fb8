-- Admins: every token, newest first.
SELECT number, name, digest, scopes, queues, workflows, created_at, expires_at, used_at, revoked_at
  FROM token ORDER BY number DESC;
