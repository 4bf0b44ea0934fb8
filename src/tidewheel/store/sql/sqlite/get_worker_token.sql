-- Server: whose worker it is.
SELECT token FROM worker_token WHERE worker = :worker_number;
