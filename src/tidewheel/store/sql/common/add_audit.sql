-- Server: somebody changed something.
INSERT INTO tidewheel.audit (at, token, who, client, verb, target, status, correlation)
VALUES (tidewheel.now_seconds(), :token::bigint, :who, :client, :verb, :target, :status, :correlation);
