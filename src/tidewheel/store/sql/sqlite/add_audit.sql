-- Server: somebody changed something.
INSERT INTO audit (at, token, who, client, verb, target, status, correlation)
VALUES (now_seconds(), :token, :who, :client, :verb, :target, :status, :correlation);
