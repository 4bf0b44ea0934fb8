-- Claim under a limit of the whole queue: how many run.
SELECT count(*) FROM tidewheel.lease WHERE queue = :queue;
