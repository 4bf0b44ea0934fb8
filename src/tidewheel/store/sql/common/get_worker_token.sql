-- Server: whose worker it is.
SELECT token FROM tidewheel.worker_token WHERE worker = :worker_number;
