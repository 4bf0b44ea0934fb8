-- Admins: what was done, newest first.
SELECT number, at, token, who, client, verb, target, status, correlation, sha256
  FROM tidewheel.audit WHERE number < :before ORDER BY number DESC LIMIT :count;
