-- Server: the token that a caller shows; it ends with the one that it was made from.
SELECT own.number, own.kind, own.parent, own.name, own.digest, own.scopes, own.queues,
       own.workflows, own.created_at,
       min(coalesce(own.expires_at, parent.expires_at),
           coalesce(parent.expires_at, own.expires_at)),
       own.used_at, coalesce(own.revoked_at, parent.revoked_at),
       now_seconds()
  FROM token AS own LEFT JOIN token AS parent ON parent.number = own.parent
 WHERE own.number = :number;
