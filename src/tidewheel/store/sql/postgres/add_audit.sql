-- Server: somebody changed something.
INSERT INTO tidewheel.audit (at, token, who, client, verb, target, status, correlation)
VALUES (tidewheel.now_seconds(), %(token)s::bigint, %(who)s, %(client)s, %(verb)s, %(target)s, %(status)s, %(correlation)s);
