-- Server: a worker belongs to the token that registered it.
INSERT INTO tidewheel.worker_token (worker, token) VALUES (:worker_number, :token)
ON CONFLICT (worker) DO NOTHING;
