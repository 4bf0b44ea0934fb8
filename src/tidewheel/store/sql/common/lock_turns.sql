-- Claim from a fair queue: how many turns were given, and the latest of tasks without a key; locked, so that claims take turns.
SELECT turns, (SELECT turn FROM tidewheel.lane WHERE lane.key = '' AND lane.queue = :queue) AS keyless_turn
  FROM tidewheel.queue WHERE name = :queue FOR NO KEY UPDATE;
