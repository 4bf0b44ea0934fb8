-- Admins: every token, newest first; each ends with the one that it was made from.
SELECT own.number, own.kind, own.parent, own.name, own.digest, own.scopes, own.names,
       own.person, own.source, own.groups, own.created_at,
       coalesce(CASE WHEN own.expires_at > parent.expires_at THEN parent.expires_at END,
                own.expires_at, parent.expires_at) AS expires_at,
       own.used_at, coalesce(own.revoked_at, parent.revoked_at) AS revoked_at
  FROM tidewheel.token AS own LEFT JOIN tidewheel.token AS parent ON parent.number = own.parent
 ORDER BY own.number DESC;
