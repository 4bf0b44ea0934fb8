-- Claim from a fair queue: how many turns were given.
UPDATE tidewheel.queue SET turns = :turns WHERE name = :queue;
