-- Claim under limits: how many run, by key; '' has none.
SELECT coalesce(limit_key, ''), count(*) FROM tidewheel.lease WHERE queue = :queue GROUP BY 1;
