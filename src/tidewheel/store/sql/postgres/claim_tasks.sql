-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
-- The lock of the task is enough: whoever moves a row of ready holds it. A row that moved since this
-- statement's snapshot is gone from its place, so the task is not taken.
-- Each task is looked up, whatever the planner believes: statistics of a moment when most tasks were not committed yet say that there is none.
WITH term AS (
    SELECT :lease_seconds::float8 AS lease_seconds, true AS is_open
), {lock_ready}, {take_locked}
SELECT {claimed_columns}, updated_at AS now
  FROM taken;
