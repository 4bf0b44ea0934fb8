-- Verify and exports: the audit in the order in which it was written.
SELECT number, at, token, who, client, verb, target, status, correlation, sha256
  FROM tidewheel.audit WHERE number > :after ORDER BY number LIMIT :count;
