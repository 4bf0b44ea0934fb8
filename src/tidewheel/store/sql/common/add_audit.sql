-- Server: what was changed, refused or tried; numbers and hashes go on from the head, which is locked.
INSERT INTO tidewheel.audit (number, at, token, who, client, verb, target, status, correlation, sha256)
SELECT number, :at::float8, token, who, client, verb, target, status, correlation, sha256
  FROM json_to_recordset(:entries::json) AS new (
       number bigint, token bigint, who text, client text, verb text, target text, status bigint, correlation text, sha256 text
  );
