-- Claim for a notice: what plan_claim tells, and if no rule of the queue holds the tasks that claim_tasks would take.
-- Both are of one snapshot, so the leases are as long as the plan says.
WITH plan AS MATERIALIZED (
    SELECT {plan_columns}
      FROM (SELECT 1) AS one LEFT JOIN tidewheel.queue ON queue.name = :queue
), term AS (
    SELECT coalesce(:lease_seconds::float8, lease_seconds) AS lease_seconds,
           worker_known AND NOT (paused OR aging OR lanes OR limited) AND coalesce(next_due_seconds > 0, true) AS is_open
      FROM plan
), {lock_ready}, {take_locked}
SELECT plan.worker_known, plan.paused, plan.aging, plan.fair, plan.lanes, plan.limited, plan.fence_kill, term.lease_seconds,
       plan.next_due_seconds, plan.now, {taken.claimed_columns}
  FROM plan CROSS JOIN term LEFT JOIN taken ON true;
