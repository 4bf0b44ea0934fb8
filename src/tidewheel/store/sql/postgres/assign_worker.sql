-- Server: a worker belongs to the token that registered it.
INSERT INTO tidewheel.worker_token (worker, token) VALUES (%(worker_number)s, %(token)s)
ON CONFLICT (worker) DO NOTHING;
