-- Claim by id, adopt: what a worker needs to execute a task that just became its own.
SELECT {claimed_columns}, updated_at AS now
  FROM tidewheel.task WHERE seq = :seq;
