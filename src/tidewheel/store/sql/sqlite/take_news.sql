-- Claim by rules: the keys whose lanes are to be looked at anew.
DELETE FROM lane_news WHERE queue = :queue RETURNING key;
