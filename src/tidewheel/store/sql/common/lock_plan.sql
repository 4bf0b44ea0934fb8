-- Claim: what plan_claim tells, with the turns of a fair queue and its limits, a row for each; locked, so that claims count one after the other.
WITH given AS MATERIALIZED (
    SELECT turns, (SELECT turn FROM tidewheel.lane WHERE lane.key = '' AND lane.queue = :queue) AS keyless_turn
      FROM tidewheel.queue WHERE name = :queue AND fair FOR NO KEY UPDATE
), rule AS MATERIALIZED (
    SELECT key, concurrency_max, rate_max, rate_seconds
      FROM tidewheel.queue_limit
     WHERE queue = :queue AND (SELECT count(*) FROM given) >= 0  -- the queue is locked before its limits
     ORDER BY key FOR UPDATE
)
SELECT {plan_columns}, given.turns AS turns_given, given.keyless_turn, rule.key, rule.concurrency_max, rule.rate_max,
       rule.rate_seconds
  FROM (SELECT 1) AS one LEFT JOIN tidewheel.queue ON queue.name = :queue
  LEFT JOIN given ON true LEFT JOIN rule ON true
 ORDER BY rule.key;
